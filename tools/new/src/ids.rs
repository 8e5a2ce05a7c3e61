//! The ids in a template that do not come from names of slices, reactors and contexts.

use anyhow::{Result, ensure};

use crate::pool::SERVER;

/// The ids that `ringfence template` writes for some stack, without functions and roles of slices and reactors. They
/// are ids of parameters, resources, and the mappings that SAM makes. A test of the template compares them.
const WRITTEN: &str = "
    AggregateStreamArn AggregateTable AggregateTableArn AggregateTableName AggregateTableStreamArn
    AlarmTopicArn Api ApiLogs Architecture AutomationsDeadLetters AutomationsDeadLettersPolicy
    AutomationsHaveDeadLetters BatchesGivenUp BatchesLost CommandQueue CommandsContend
    CommandsDeadLetters CommandsFail CommandsHaveDeadLetters CommandsWait CorsOrigins Dashboard
    DcbLogRole DeadlinesLate DocumentStreamArn DocumentTable DocumentTableArn DocumentTableName
    DocumentTableStreamArn EventStreamArn EventTable EventTableArn EventTableName EventTableStreamArn
    EventTopic EventsOnBus FireDeadlines FireDeadlinesRole ForwardSpans ForwardSpansRole FunctionsFail IndexEvents
    IndexEventsAggregates IndexEventsDeadLetters IndexEventsDocuments IndexEventsFailedBatches
    IndexEventsHasDeadLetters IndexEventsRole IndexEventsStream IndexStreamArn IndexTable IndexTableArn
    IndexTableName IndexTableStreamArn JwtAudience JwtIssuer JwtIssuers LanesParked LogLevel LogRetentionDays Logs MailFrom
    MailIdentity MappingsStopped MetricsPerSlice NotifyReaders NotifyReadersRole NotifyReadersStream ProjectViews
    ProjectViewsFailedBatches ProjectViewsRole ProjectViewsStream PublishEvents PublishEventsAggregates
    PublishEventsDeadLetters PublishEventsDocuments PublishEventsFailedBatches
    PublishEventsHasDeadLetters PublishEventsRole PublishEventsStream QueryViews QueryViewsConcurrency
    QueryViewsRole ReactInOrder ReactInOrderRole RowsParked RunCommands RunCommandsRole
    SmtpUrlParameter SpansUrl StreamsBehind UserPool UserPoolClient UserPoolDomain UserPoolServerStack ViewTable ViewTableArn
    ViewTableName ViewsBehind
    WebhookPrivate WebhookSecretsParameter WebhookUrl
";

/// The ids that `ringfence template` writes for some stack.
pub fn written_ids() -> impl Iterator<Item = &'static str> {
    WRITTEN.split_whitespace()
}

/// Whether `ringfence template` writes this id for some stack. If an alarm has too many functions, there are more
/// alarms with numbers in their ids. The ids of resource servers come from scopes.
#[must_use]
pub fn is_written(id: &str) -> bool {
    let id = id.trim_end_matches(|c: char| c.is_ascii_digit());
    id.starts_with(SERVER) || written_ids().any(|written| written == id)
}

/// Refuses a name whose id `ringfence template` writes for another thing, now or when the stack needs that thing.
///
/// # Errors
/// Names the id.
pub(crate) fn check_id(what: &str, name: &str, id: &str) -> Result<()> {
    ensure!(
        !is_written(id),
        "{what} {name}: `ringfence template` writes something else of the id {id}: choose another name"
    );
    Ok(())
}
