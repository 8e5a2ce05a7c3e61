//! Deadlines on the tables of the template: their costs, commands that clear nothing, and sweeps that look ahead.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use ringfence_aws::wire::{Edit, Fault};
use ringfence_aws::{Clock, Retry, Usage};
use ringfence_core::kit::id;
use ringfence_core::prelude::{Command, Due, Never, Slice};
use ringfence_core::{
    Append, Appended, CommandContext, Consistency, Context, Decisions, Envelope, EventLog,
    NewEvent, Plan, Query, QueryItem, Reads, ReadsOf, SequencedEvent, Tag, Vaulted, handle,
};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Index, Indexer, Partition, Until};
use ringfence_local::template::Template;
use ringfence_log::StackLogs;
use ringfence_services::deadlines::{Deadlines, Sweep, Swept};
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_testing::Dynamo;
use ringfence_views::{Definition, DueNote, DueReader, Projector, project_views};
use serde_json::{Value, json};
use signups::confirm_sign_up::ConfirmSignUp;
use signups::lapse_sign_up::{Consumed, LapseSignUp, Open};
use signups::{EmailId, OTP_VALID_MS, Otp, SignUpInitiated, SignUpLapsed, Signups};
use stack::Shop;
use tokio::time::Instant;

/// Nothing here takes this long.
const LONG: Duration = Duration::from_secs(600);
const MINUTE: u64 = 60_000;

struct World {
    dynamo: Dynamo,
    due: Definition,
    partitions: BTreeSet<Partition>,
}

impl World {
    fn start() -> Self {
        static TEMPLATE: LazyLock<Template> = LazyLock::new(|| Template::of_stack().unwrap());
        let dynamo = Dynamo::with(&TEMPLATE, &["EventTable", "IndexTable", "ViewTable"]);
        Self { dynamo, due: Definition::of_due::<LapseSignUp>(), partitions: BTreeSet::new() }
    }

    fn now_ms(&self) -> u64 {
        self.dynamo.clock.now_ms()
    }

    fn log(&self) -> DcbLog {
        let (client, clock) = (self.dynamo.client.clone(), self.dynamo.clock.clone());
        DcbLog::new(client, "EventTable", Signups::catalog().unwrap(), clock)
    }

    /// The log with a vault.
    fn vaulted<R: Reads>(&self) -> Vaulted<DcbLog> {
        Vaulted::new::<R>(self.log(), self.dynamo.vault().unwrap())
    }

    async fn initiate(&mut self, person: &str) {
        let (email_id, otp) = (id(person), id("1"));
        let event: NewEvent =
            SignUpInitiated { email_id, otp, name: "Jo".to_owned().into() }.into();
        let context = CommandContext { now_ms: self.now_ms(), ..CommandContext::default() };
        let envelope = Envelope { context, ..Envelope::default() };
        let append = Append { events: vec![event], seen: None, record: None, envelope: &envelope };
        let Appended::Committed(events) = self.vaulted::<Consumed>().append(append).await.unwrap()
        else {
            unreachable!("without a record")
        };
        self.partitions.extend(events.iter().map(Partition::of));
    }

    /// Confirms the sign-up, if that is still possible.
    async fn confirm(&self, person: &str) {
        let command = ConfirmSignUp { email_id: id(person), otp: id("1") };
        let context = CommandContext { now_ms: self.now_ms(), ..CommandContext::default() };
        let envelope = Envelope { context, ..Envelope::default() };
        let log = self.vaulted::<ReadsOf<ConfirmSignUp>>();
        let catalog = Signups::catalog().unwrap();
        handle(&log, &catalog, &Decisions::new(0), &command, &envelope).await.unwrap();
    }

    fn projector(&self) -> Projector {
        let (client, clock) = (self.dynamo.client.clone(), self.dynamo.clock.clone());
        let index = Index::new(client.clone(), "IndexTable", [self.log().into()]);
        let catalogs = stack::stack().catalogs;
        Projector::new(client, index, "ViewTable", catalogs, clock)
    }

    /// Indexes and folds all new events.
    async fn show(&self) -> Usage {
        let indexer = Indexer::new([self.log().into()], self.dynamo.client.clone(), "IndexTable");
        for (partition, outcome) in indexer.index(self.partitions.clone(), Retry::default()).await {
            outcome.unwrap_or_else(|error| panic!("{partition}: {error}"));
        }
        let projector = self.projector();
        let round = project_views::run_views(
            &projector,
            &[self.due],
            Until::Present,
            LONG,
            &self.dynamo.clock,
            "test",
        )
        .await;
        assert_eq!(round.unfinished, [""; 0]);
        projector.meter().snapshot()
    }

    /// A sweep whose clock is off by so many milliseconds.
    async fn sweep(&self, off_ms: i64) -> Swept {
        let swept = self.sweeper(off_ms).all(LONG).await;
        assert_eq!(swept.failures, [""; 0]);
        swept
    }

    fn sweeper(&self, off_ms: i64) -> Sweep {
        self.sweeper_of::<Shop>(&Clock::fixed(self.now_ms().saturating_add_signed(off_ms)))
    }

    fn sweeper_of<M: Members>(&self, clock: &Clock) -> Sweep {
        let logs = StackLogs { clock: clock.clone(), ..self.dynamo.logs() };
        Sweep::new(&Deadlines::of::<M>(), &logs, "ViewTable").unwrap()
    }

    /// The events of a sign-up.
    async fn events(&self, person: &str) -> Vec<SequencedEvent> {
        let types = ["SignUpInitiated", "SignUpConfirmed", "SignUpLapsed"].map(Into::into);
        let tags = vec![Tag::new("emailId", person), Tag::new("otp", "1")];
        let query = Query { items: vec![QueryItem { tags, types: types.into() }] };
        let plan = Plan::new(&query, &Signups::catalog().unwrap()).unwrap();
        let envelope = Envelope::default();
        self.log().read_with_seen(&plan, Consistency::Strong, &envelope).await.unwrap().0
    }

    async fn types(&self, person: &str) -> Vec<String> {
        self.events(person).await.into_iter().map(|event| event.event_type).collect()
    }

    fn wait(&self, ms: u64) {
        self.dynamo.clock.set(self.now_ms() + ms);
    }
}

/// Write units of a row that is set, and of one that is cleared, which moves its view's checkpoint for two more; and
/// read units of a sweep that finds nothing.
#[tokio::test(start_paused = true)]
async fn a_deadline_costs_seven_write_units_and_an_idle_minute_a_read_unit() {
    let mut world = World::start();
    world.initiate("bob").await;
    world.show().await;
    let written = |usage: &Usage| usage.total().write;
    world.initiate("ada").await;
    let set = written(&world.show().await);
    world.confirm("ada").await;
    let cleared = written(&world.show().await);
    assert_eq!((set, cleared), (2.0, 2.0 + 3.0));

    let reader = DueReader::new(world.dynamo.client.clone(), "ViewTable");
    assert_eq!(reader.standing(&world.due, world.now_ms()).await.unwrap().rows, 0);
    let usage = reader.meter().snapshot();
    assert_eq!((usage.reads, usage.total().read), (2, 1.0));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_clears_nothing_is_sent_after_growing_pauses_and_stops_no_other() {
    let mut world = World::start();
    world.initiate("ada").await;
    world.initiate("bob").await;
    world.show().await;
    world.wait(OTP_VALID_MS);
    assert_eq!(world.sweep(0).await, Swept::default(), "a millisecond before the time");
    // The rows do not show this yet.
    world.confirm("ada").await;
    world.wait(1);
    let swept = world.sweep(0).await;
    assert_eq!((swept.fired, swept.left, swept.paused), (1, 1, 0));
    assert_eq!(swept.causes, ["lapse-sign-up ada/1: the command had nothing to change"]);
    assert_eq!(world.types("bob").await, ["SignUpInitiated", "SignUpLapsed"]);
    // The process died before the rows changed. Bob's command finds its event, and Ada's command waits.
    let swept = world.sweep(0).await;
    assert_eq!((swept.fired, swept.left, swept.paused), (0, 1, 1));
    assert_eq!(world.types("bob").await.len(), 2);
    let reader = DueReader::new(world.dynamo.client.clone(), "ViewTable");
    for (minutes, tries, paused) in [(1, 2, 0), (1, 2, 2), (1, 3, 0)] {
        world.wait(minutes * MINUTE);
        let swept = world.sweep(0).await;
        assert_eq!((swept.fired, swept.paused), (0, paused), "{tries}");
        let standing = reader.standing(&world.due, world.now_ms()).await.unwrap();
        assert_eq!(standing.notes.len(), 2);
        assert!(standing.notes.iter().all(|(_, note)| note.tries == tries), "{standing:?}");
    }
    // A person who has mended the cause does not wait.
    let swept = world.sweeper(0).without_pauses().all(LONG).await;
    assert_eq!((swept.left, swept.paused), (2, 0));
    world.show().await;
    assert_eq!(world.sweep(0).await, Swept::default());
}

#[tokio::test(start_paused = true)]
async fn a_time_that_was_moved_has_no_pause_and_is_waited_for_by_no_sweep() {
    let mut world = World::start();
    world.initiate("ada").await;
    world.show().await;
    // The index still has an earlier time of the row.
    let (now_ms, id) = (world.now_ms(), "ada/1");
    let entry = json!({ "dueAt": { "N": now_ms.to_string() }, "id": { "S": id } });
    let stale = move |answer: &mut Value| answer["Items"] = json!([entry]);
    world.dynamo.wire.inject("Query", 0, Fault::Reply(Edit::new(stale)));
    let swept = world.sweep(0).await;
    assert_eq!((swept.fired, swept.left, swept.unfinished), (0, 0, false));
    assert!(world.dynamo.wire.is_spent());

    // A command of the earlier time cleared nothing, and its pause is not over.
    let reader = DueReader::new(world.dynamo.client.clone(), "ViewTable");
    let (cause, why) = ("emailId:ada/0".to_owned(), "the command had nothing to change".to_owned());
    let note = DueNote { cause, tries: 7, next_ms: now_ms + 2 * OTP_VALID_MS, why };
    reader.note(&world.due, id, None, &note).await.unwrap();
    world.wait(OTP_VALID_MS + 1);
    let swept = world.sweep(0).await;
    assert_eq!((swept.fired, swept.paused), (1, 0));
    assert!(reader.notes(&world.due).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_late_write_changes_no_later_note() {
    let world = World::start();
    let reader = DueReader::new(world.dynamo.client.clone(), "ViewTable");
    let note = |tries| {
        let (cause, why) = ("e/1".to_owned(), "it was rejected".to_owned());
        DueNote { cause, tries, next_ms: u64::from(tries), why }
    };
    // Both are sent again at once, and their first requests arrive minutes later.
    world.dynamo.wire.inject("PutItem", 0, Fault::Stray(LONG));
    reader.note(&world.due, "a", None, &note(1)).await.unwrap();
    reader.note(&world.due, "a", Some(&note(1)), &note(2)).await.unwrap();
    world.dynamo.wire.inject("DeleteItem", 0, Fault::Stray(LONG));
    reader.note(&world.due, "b", None, &note(1)).await.unwrap();
    reader.forget(&world.due, "b", &note(1)).await.unwrap();
    reader.note(&world.due, "b", None, &note(3)).await.unwrap();
    tokio::time::sleep(2 * LONG).await;
    let notes = reader.notes(&world.due).await.unwrap();
    assert_eq!(notes, [("a".to_owned(), note(2)), ("b".to_owned(), note(3))].into());
}

/// The same as LapseSignUp, but to the second, and over several keys of the index.
#[derive(Clone, Debug, PartialEq, Command)]
struct LapseInTime {
    #[tag(partition)]
    email_id: EmailId,
    #[tag(partition, key = "otp")]
    otp: Otp,
}

impl Slice for LapseInTime {
    const NAME: &'static str = "lapse-in-time";
    type Context = Signups;
    type State = Open;
    type Writes = SignUpLapsed;
    type Rejection = Never;

    fn decide(&self, open: &Open, context: &CommandContext) -> Result<Vec<SignUpLapsed>, Never> {
        let Self { email_id, otp } = self.clone();
        LapseSignUp { email_id, otp }.decide(open, context)
    }
}

impl Due for LapseInTime {
    const SHARDS: u32 = 3;
    const LOOKS_AHEAD: bool = true;
    type Reads = Consumed;
    type Row = u64;

    fn rows(event: &Consumed) -> Vec<String> {
        LapseSignUp::rows(event)
    }

    fn evolve(row: Option<u64>, id: &str, event: &Consumed) -> Option<u64> {
        LapseSignUp::evolve(row, id, event)
    }

    fn due_ms(row: &u64) -> Option<u64> {
        Some(*row)
    }

    fn command(id: &str, row: &u64) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let LapseSignUp { email_id, otp } = LapseSignUp::command(id, row)?;
        Ok(Self { email_id, otp })
    }
}

/// A stack with only that due.
struct InTime;

impl Members for InTime {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.due::<LapseInTime>();
    }
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_looks_ahead_waits_for_each_time_in_every_shard() {
    let mut world = World { due: Definition::of_due::<LapseInTime>(), ..World::start() };
    // Those in the last shard are due first.
    let people = ["eve", "dora", "cid", "bob", "ada"];
    for person in people {
        world.initiate(person).await;
        world.wait(7_000);
    }
    world.show().await;
    // The last time is 66 seconds later, so it is for the next sweep.
    world.wait(OTP_VALID_MS - 5 * 7_000 - 38_000);
    for (fired, of) in [(4, &people[..4]), (1, &people[4..])] {
        let clock = Clock::running(world.now_ms());
        let swept = world.sweeper_of::<InTime>(&clock).all(LONG).await;
        assert_eq!((swept.fired, swept.left), (fired, 0), "{swept:?}");
        for person in of {
            let events = world.events(person).await;
            let late = events[1].at - (events[0].at + OTP_VALID_MS + 1);
            assert!(late < 100, "{person} is {late} ms late");
        }
        world.show().await;
        world.wait(MINUTE);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sweep_ends_in_time_and_begins_no_command_in_its_last_two_seconds() {
    let mut world = World { due: Definition::of_due::<LapseInTime>(), ..World::start() };
    // The rows were spread by a build that said another number.
    world.due.shards = 7;
    for person in ["ada", "bob", "cid"] {
        world.initiate(person).await;
        world.wait(20_000);
    }
    world.show().await;
    // They are due in 10, 30 and 50 seconds.
    world.wait(OTP_VALID_MS + 1 - 3 * 20_000 - 10_000);
    let (clock, begun) = (Clock::running(world.now_ms()), Instant::now());
    let time = Duration::from_secs(31);
    let swept = world.sweeper_of::<InTime>(&clock).all(time).await;
    assert_eq!((swept.fired, swept.left, swept.unfinished), (1, 0, true));
    assert_eq!(begun.elapsed(), time);
    assert_eq!(world.types("bob").await, ["SignUpInitiated"]);
}
