//! The ids in a template that do not come from names of slices, reactors and contexts.

use anyhow::{Result, ensure};

use crate::pool::SERVER;

/// The ids that `ringfence template` writes for some stack, without functions and roles of slices and reactors. They
/// are ids of parameters, resources, and the mappings that SAM makes. A test of the template compares them.
const WRITTEN: &str = "
    AggregateStreamArn AggregateTable AggregateTableArn AggregateTableName AggregateTableStreamArn
    AlarmTopicArn Api ApiLogs ApiRequestsPerSecond Architecture AutomationsDeadLetters AutomationsDeadLettersPolicy
    AutomationsHaveDeadLetters BatchesGivenUp BatchesKept BatchesLost CommandQueue CommandsContend
    CommandsDeadLetters CommandsFail CommandsHaveDeadLetters CommandsWait CorsOrigins Dashboard
    DcbLogRole DeadlinesLate DeadlinesStopped DocumentStreamArn DocumentTable DocumentTableArn
    DocumentTableName DocumentTableStreamArn EventStreamArn EventTable EventTableArn EventTableName
    EventTableStreamArn EventTopic EventsOnBus FireDeadlines FireDeadlinesRole ForwardSpans ForwardSpansRole
    FunctionsFail IndexEvents IndexEventsAggregates IndexEventsDeadLetters IndexEventsDocuments
    IndexEventsFailedBatches IndexEventsHasDeadLetters IndexEventsRole IndexEventsStream IndexStreamArn
    IndexTable IndexTableArn IndexTableName IndexTableStreamArn JwtAudience JwtIssuer JwtIssuers
    KeyTable KeyTableArn KeyTableName LanesParked LinesOfFailures LinesOfLateRecords LogLevel LogRetentionDays Logs LookAtMappings
    MailFrom MailIdentity MappingsStopped MetricsPerSlice ProjectViews ProjectViewsFailedBatches ProjectViewsRole ProjectViewsStream
    PersonalKey PersonalKeyArn PublishEvents PublishEventsAggregates PublishEventsDeadLetters PublishEventsDocuments
    PublishEventsFailedBatches PublishEventsHasDeadLetters PublishEventsRole PublishEventsStream
    QueryViews QueryViewsConcurrency QueryViewsRole ReactInOrder ReactInOrderRole ReaderMemory RowsParked RunCommands
    RunCommandsRole ShowDashboard SmtpUrlParameter SpansUrl StreamsBehind TableKeyArn UserPool
    UserPoolClient UserPoolDomain UserPoolServerStack ViewTable ViewTableArn ViewTableName ViewsBehind
    WarmWriteUnits WebhookPrivate WebhookSecretsParameter WebhookUrl
";

/// The ids that `ringfence template` writes for some stack.
pub fn written_ids() -> impl Iterator<Item = &'static str> {
    WRITTEN.split_whitespace()
}

/// Whether `ringfence template` writes this id for some stack. The ids of resource servers come from scopes.
#[must_use]
pub fn is_written(id: &str) -> bool {
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
