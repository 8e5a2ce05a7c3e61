//! The requests of fire-deadlines, without the requests of its slices.

use std::time::Duration;

use ringfence_aws::Retry;
use ringfence_aws::wire::Exchange;
use ringfence_core::kit::{BEGIN_MS, fail};
use ringfence_core::{
    Append, Appended, BoundaryId, Envelope, Event, EventLog, NewEvent, events, id_type, prelude::*,
};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Index, Indexer, Partition, Until};
use ringfence_local::template::Template;
use ringfence_services::deadlines::{Deadlines, Sweep, Swept};
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::{Definition, Projector, project_views};
use serde::Serialize;

use crate::Dynamo;

/// Nothing here takes this long.
const LONG: Duration = Duration::from_secs(600);
const MINUTE: u64 = 60_000;

id_type!(ReminderId, "names a reminder");

/// A person shall be reminded.
#[derive(Clone, Debug, PartialEq, Event)]
struct ReminderSet {
    #[tag(partition)]
    reminder_id: ReminderId,
    at_ms: u64,
    /// Whether the command is rejected.
    is_barred: bool,
}

/// A person was reminded, or no longer needs to be.
#[derive(Clone, Debug, PartialEq, Event)]
struct ReminderEnded {
    #[tag(partition)]
    reminder_id: ReminderId,
}

#[derive(Reads)]
enum Consumed {
    ReminderSet { reminder_id: ReminderId, at_ms: u64, is_barred: bool },
    ReminderEnded { reminder_id: ReminderId },
}

/// When the reminder is due, and whether it is barred.
#[derive(Default)]
struct Reminder(Option<(u64, bool)>);

impl State for Reminder {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::ReminderSet { at_ms, is_barred, .. } => Self(Some((at_ms, is_barred))),
            Consumed::ReminderEnded { .. } => Self(None),
        }
    }
}

/// Reminds a person.
#[derive(Clone, Debug, PartialEq, Command)]
struct Remind {
    #[tag(partition)]
    reminder_id: ReminderId,
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
enum Rejection {
    #[error("barred")]
    Barred,
}

struct Reminders;

impl Context for Reminders {
    const NAME: &'static str = "reminders";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [ReminderSet::SCHEMA, ReminderEnded::SCHEMA])
    }
}

impl Slice for Remind {
    const NAME: &'static str = "remind";
    type Context = Reminders;
    type State = Reminder;
    type Writes = ReminderEnded;
    type Rejection = Rejection;

    fn decide(
        &self,
        Reminder(set): &Reminder,
        context: &CommandContext,
    ) -> Result<Vec<ReminderEnded>, Rejection> {
        match set {
            Some((at_ms, true)) if *at_ms <= context.now_ms => Err(Rejection::Barred),
            Some((at_ms, false)) if *at_ms <= context.now_ms => {
                Ok(vec![ReminderEnded { reminder_id: self.reminder_id.clone() }])
            }
            _ => Ok(vec![]),
        }
    }
}

impl Due for Remind {
    type Reads = Consumed;
    type Row = u64;

    fn rows(event: &Consumed) -> Vec<String> {
        let (Consumed::ReminderSet { reminder_id, .. } | Consumed::ReminderEnded { reminder_id }) =
            event;
        vec![reminder_id.to_string()]
    }

    fn evolve(_: Option<u64>, _: &str, event: &Consumed) -> Option<u64> {
        match event {
            Consumed::ReminderSet { at_ms, .. } => Some(*at_ms),
            Consumed::ReminderEnded { .. } => None,
        }
    }

    fn due_ms(at_ms: &u64) -> Option<u64> {
        Some(*at_ms)
    }

    fn command(id: &str, _: &u64) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self { reminder_id: id.parse()? })
    }
}

/// A stack with only that context.
struct Stack;

impl Members for Stack {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<Reminders>();
    }
}

impl Members for Reminders {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<Remind>().due::<Remind>();
    }
}

fn set(reminder: &str, is_barred: bool) -> NewEvent {
    let reminder_id = ringfence_core::kit::id(reminder);
    ReminderSet { reminder_id, at_ms: BEGIN_MS + MINUTE, is_barred }.into()
}

/// The requests of sweeps with rows that fire, rows that stay, and notes that are deleted.
pub(crate) async fn requests_of_sweeps(template: &Template) -> Vec<Exchange> {
    let dynamo = Dynamo::with(template, &["EventTable", "IndexTable", "ViewTable"]);
    let mut asked = Vec::new();
    let both = Swept { fired: 1, left: 1, lag_ms: 0, ..Swept::default() };
    let ended = ReminderEnded { reminder_id: ringfence_core::kit::id("b") };
    let rounds = [
        (events![set("a", false), set("b", true)], both.clone()),
        (vec![], Swept { fired: 0, lag_ms: MINUTE, ..both.clone() }),
        (events![ended, set("c", false)], Swept { left: 0, lag_ms: 2 * MINUTE, ..both }),
    ];
    for (n, (events, expected)) in (1..).zip(rounds) {
        publish(&dynamo, events).await;
        dynamo.clock.set(BEGIN_MS + n * MINUTE);
        dynamo.wire.forget();
        let deadlines = Deadlines::of::<Stack>();
        let sweep = Sweep::new(&deadlines, &dynamo.logs(), "ViewTable");
        let sweep =
            sweep.unwrap_or_else(|error| fail("the sweep", error as Box<dyn std::error::Error>));
        let swept = sweep.all(LONG).await;
        assert_eq!(Swept { causes: Vec::new(), ..swept }, expected, "round {n}");
        asked.extend(dynamo.wire.take());
    }
    // The cases of the stack's slices show the requests to logs.
    asked.retain(|one| !one.request.to_string().contains("EventTable"));
    asked
}

/// Appends events, indexes them, and folds all new ones.
async fn publish(dynamo: &Dynamo, events: Vec<NewEvent>) {
    let client = || dynamo.client.clone();
    let catalog = Reminders::catalog().unwrap_or_else(|error| fail("the catalog", error));
    let log = DcbLog::new(client(), "EventTable", catalog, dynamo.clock.clone());
    let mut partitions: Vec<_> = ["a", "b", "c"]
        .map(|id| Partition::from(BoundaryId::stored(format!("reminderId:{id}"))))
        .into();
    for event in events {
        let envelope = Envelope::default();
        let append = Append { events: vec![event], seen: None, record: None, envelope: &envelope };
        match log.append(append).await.expect("an append") {
            Appended::Committed(events) => partitions.extend(events.iter().map(Partition::of)),
            Appended::Repeated(_) => unreachable!("without a record"),
        }
    }
    let bodies = dynamo.logs().bodies(&[ringfence_dcb_log::SOURCE].into());
    let indexer = Indexer::new([log.into()], client(), "IndexTable");
    for (partition, outcome) in indexer.index(partitions, Retry::default()).await {
        outcome.unwrap_or_else(|error| fail(partition, error));
    }
    let index = Index::new(client(), "IndexTable", bodies);
    let projector =
        Projector::new(client(), index, "ViewTable", Default::default(), dynamo.clock.clone());
    let dues = [Definition::of_due::<Remind>()];
    let round =
        project_views::run_views(&projector, &dues, Until::Present, LONG, &dynamo.clock, "r-1")
            .await;
    assert_eq!(round.unfinished, Vec::<String>::new());
}
