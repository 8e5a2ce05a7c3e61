//! project-views: folds new events into the rows of all views, and notifies the reactors that read them.
//!
//! The index's stream only notifies; a run reads from where the views are
//! ([`project_views`](ringfence_views::project_views)). If a view fails, the invocation fails as a whole, so that
//! Lambda delivers the stream's records again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{OptionFuture, join};
use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::{Clock, sdk_config};
use ringfence_core::LogKind;
use ringfence_feed::{Index, Until};
use ringfence_lambda::{Call, Service, Variables, chain, waited_ms};
use ringfence_log::StackLogs;
use ringfence_views::project_views::{Folded, NAME, run_views};
use ringfence_views::{Definition, Projector};
use serde_json::{Value, json};

use crate::topic::{Bus, Topic, TopicEntry, Verdict};

/// The source of a notification. No context can have this name.
pub const NOTIFICATION_SOURCE: &str = "ringfence";
/// The type of a notification. Its detail has the names of the reactors and ordered automations that it is for.
pub const NOTIFICATION_TYPE: &str = "IndexGrown";

/// Records that have waited for less time, in milliseconds, are new.
const NEW_MS: u64 = 10_000;

/// The function. It serves the views of the stack.
pub struct ProjectViews {
    projector: Projector,
    views: Vec<Definition>,
    clock: Clock,
}

/// The names of the tables of the logs, of the index and of the views, and of the bus, if the stack has readers of
/// lanes.
pub struct Names {
    logs: BTreeMap<LogKind, String>,
    index: String,
    views: String,
    bus: Option<String>,
}

impl Service for ProjectViews {
    const NAME: &'static str = NAME;
    // The lag takes a read of the index for each view that is behind.
    const ANSWER_TIME: Duration = Duration::from_secs(5);
    const TIME_DEFAULT: Duration = Duration::from_secs(20);
    type Of = Folded;
    type Config = Names;

    fn config(folded: &Folded, variables: &mut Variables) -> Names {
        Names {
            logs: variables.tables(&folded.sources),
            index: variables.required("INDEX_TABLE"),
            views: variables.required("VIEW_TABLE"),
            bus: (!folded.lanes.is_empty()).then(|| variables.required("EVENT_BUS")),
        }
    }

    async fn open(folded: Folded, names: Names) -> Result<Self, Error> {
        let Folded { views, catalogs, sources, lanes } = folded;
        let (client, clock) = (ringfence_aws::client_from_env()?, Clock::system());
        let bus = names.bus.map(|name| {
            let client = aws_sdk_eventbridge::Client::new(&sdk_config()?);
            Ok::<_, Error>(Arc::new(Topic::new(client, name)))
        });
        let bus = bus.transpose()?;
        let bus_opens = OptionFuture::from(bus.as_deref().map(Topic::open));
        join(ringfence_aws::open(&client, &clock), bus_opens).await;
        let logs = StackLogs {
            client: client.clone(),
            clock: clock.clone(),
            tables: names.logs,
            vault: None,
        };
        let index = Index::new(client.clone(), names.index, logs.bodies(&sources));
        let mut projector = Projector::new(client, index, names.views, catalogs, clock.clone());
        if let Some(bus) = bus {
            let notify = move |readers| notify(bus.clone(), readers).boxed();
            projector = projector.notifying(lanes, Arc::new(notify));
        }
        Ok(Self { projector, views, clock })
    }

    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let (projector, clock) = (&self.projector, &self.clock);
        let (views, until) = (&self.views, until(&call.payload, clock.now_ms()));
        let round = run_views(projector, views, until, call.time, clock, &call.request_id).await;
        round.line.write();
        if round.unfinished.is_empty() {
            return Ok(Value::Null);
        }
        let (error_type, error_message) = ("view-behind".to_owned(), round.unfinished.join("; "));
        Err(Diagnostic { error_type, error_message })
    }
}

/// How far to read. After new records, as far as they show: each page brings one. Behind old ones there is more, and a
/// run that does not come to the end says how far behind the views are.
fn until(payload: &Value, now_ms: u64) -> Until {
    match waited_ms(payload, now_ms) {
        Some(..NEW_MS) => Until::of_records(payload),
        _ => Until::Present,
    }
}

/// Sends one entry to the bus, which the rule of each of these readers takes.
async fn notify(bus: Arc<Topic>, readers: BTreeSet<&'static str>) -> Result<(), String> {
    let notification = TopicEntry {
        source: NOTIFICATION_SOURCE.to_owned(),
        detail_type: NOTIFICATION_TYPE.to_owned(),
        detail: json!({ "readers": readers }).to_string(),
        id: String::new(),
        time_ms: None,
    };
    match bus.put(&[&notification]).await {
        Ok(verdicts) if verdicts == [Verdict::Sent] => Ok(()),
        Ok(verdicts) => Err(format!("{verdicts:?}")),
        Err(error) => Err(chain(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_records_say_how_far_to_read() {
        let keys = json!({ "p": { "S": "$AppendsEpoch-0_2" }, "i": { "N": "5" } });
        let change = json!({ "Keys": keys, "ApproximateCreationDateTime": 100.0 });
        let payload = json!({ "Records": [{ "dynamodb": change }] });
        let past = Until::Past(2_000_005.try_into().expect("a place"));
        assert_eq!([109_999, 110_000].map(|ms| until(&payload, ms)), [past, Until::Present]);
        assert_eq!(
            until(&json!({ "Records": [{ "dynamodb": { "Keys": keys } }] }), 0),
            Until::Present
        );
    }
}
