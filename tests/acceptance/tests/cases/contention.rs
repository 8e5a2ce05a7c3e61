//! The rules of slices in concurrent commands, which a single run of a case can't show.

use std::marker::PhantomData;
use std::time::Duration;

use accounts::AccountRegistered;
use accounts::change_username::ChangeUsername;
use accounts::register_account::RegisterAccount;
use courses::define_course::DefineCourse;
use courses::subscribe_student::{COURSES_MAX, SubscribeStudent};
use futures::TryStreamExt;
use futures::future::{join, join_all};
use inventory::reserve_stock::ReserveStock;
use inventory::{Item, StockReceived};
use invoices::create_invoice::CreateInvoice;
use ordering::submit_order::SubmitOrder;
use ringfence_aws::Clock;
use ringfence_core::kit::{BEGIN_MS, id};
use ringfence_core::{
    Append, Context, Decisions, Envelope, EventLog, MailAddress, NewEvent, Outcome, ReadsOf,
    SequencedEvent, Slice, Vaulted, events, handle,
};
use ringfence_dcb_log::{DcbLog, VerifyOptions};
use ringfence_local::template::Template;
use ringfence_subjects::KeyTable;
use ringfence_testing::Dynamo;
use serde_json::Value;

/// Fewer than a command's attempts, so the last of them still commits.
const CALLERS: usize = 6;

/// An empty table of events, and the clients of one context.
struct World<C> {
    dynamo: Dynamo,
    context: PhantomData<C>,
}

impl<C: Context> World<C> {
    fn start() -> Self {
        let template = Template::of_stack().unwrap();
        let dynamo = Dynamo::with(&template, &["EventTable"]);
        dynamo.take_time(1);
        Self { dynamo, context: PhantomData }
    }

    fn log(&self) -> DcbLog {
        let client = self.dynamo.client.clone();
        DcbLog::new(client, "EventTable", C::catalog().unwrap(), Clock::running(BEGIN_MS))
    }

    /// Runs the command with a new client. Returns whether it was accepted.
    async fn accepts<S: Slice<Context = C>>(&self, command: S) -> bool {
        let vault = self.dynamo.vault().unwrap();
        let log = Vaulted::new::<ReadsOf<S>>(self.log(), vault);
        let catalog = C::catalog().unwrap();
        let (decisions, envelope) = (Decisions::new(0), Envelope::default());
        let handled = handle(&log, &catalog, &decisions, &command, &envelope).await.unwrap();
        matches!(handled.outcome, Outcome::Accepted(_))
    }

    /// Runs the commands at once. Returns how many were accepted.
    async fn race<S: Slice<Context = C>>(&self, commands: impl Iterator<Item = S>) -> usize {
        let accepted = join_all(commands.map(|command| self.accepts(command))).await;
        accepted.into_iter().filter(|accepted| *accepted).count()
    }

    async fn seed(&self, events: Vec<NewEvent>) {
        let envelope = Envelope::default();
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        self.log().append(append).await.unwrap();
    }

    async fn events(&self) -> Vec<SequencedEvent> {
        self.log().scan().try_collect().await.unwrap()
    }

    /// The number of events of a type. Every fence must agree with the events.
    async fn count(&self, event_type: &str) -> usize {
        let options = VerifyOptions { settle: Duration::ZERO, ..VerifyOptions::default() };
        let report = self.log().verify_fences(&options).await.unwrap();
        assert!(report.in_order(), "{report:?}");
        let events = self.events().await;
        events.iter().filter(|event| event.event_type == event_type).count()
    }
}

#[tokio::test(start_paused = true)]
async fn invoices_created_at_once_have_numbers_without_gaps() {
    let world = World::<invoices::Invoices>::start();
    let create = |_| CreateInvoice { invoice_data: Value::Null };
    assert_eq!(world.race((0..CALLERS).map(create)).await, CALLERS);
    assert_eq!(world.count("InvoiceCreated").await, CALLERS);
    let events = world.events().await;
    let number = |event: &SequencedEvent| event.data["invoiceNumber"].as_u64();
    let mut numbers: Vec<_> = events.iter().filter_map(number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=CALLERS as u64).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_username_or_an_address_that_many_want_goes_to_one() {
    let world = World::<accounts::Accounts>::start();
    let register =
        |n| RegisterAccount { account_id: id(&format!("a{n}")), username: id("u1"), email: None };
    assert_eq!(world.race((0..CALLERS).map(register)).await, 1);
    let with_address = |first: usize| {
        (first..first + CALLERS).map(|n| RegisterAccount {
            account_id: id(&format!("b{n}")),
            username: id(&format!("v{n}")),
            email: Some(id::<MailAddress>("ada@example.com").into()),
        })
    };
    assert_eq!(world.race(with_address(0)).await, 1);
    assert_eq!(world.count("AccountRegistered").await, 2);
    // Forgetting its person makes the address free, for one.
    let events = world.events().await;
    let claimed = events.iter().find(|event| event.event_type == "EmailClaimed").unwrap();
    let Dynamo { client, clock, .. } = &world.dynamo;
    let keys = KeyTable::new(client.clone(), "KeyTable", clock.clone());
    let person = claimed.data["accountId"].as_str().unwrap();
    keys.forget(person, clock.now_ms(), "asked for it").await.unwrap();
    assert_eq!(world.race(with_address(CALLERS)).await, 1);
    assert_eq!(world.count("EmailClaimed").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_username_is_either_changed_to_or_registered() {
    let world = World::<accounts::Accounts>::start();
    world.seed(events![AccountRegistered { account_id: id("a1"), username: id("u1") }]).await;
    let change = ChangeUsername { account_id: id("a1"), username: id("u2") };
    let register = RegisterAccount { account_id: id("a2"), username: id("u2"), email: None };
    let (changed, registered) = join(world.accepts(change), world.accepts(register)).await;
    assert_ne!(changed, registered);
    assert_eq!(world.events().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_form_sent_many_times_at_once_is_one_order() {
    let world = World::<ordering::Ordering>::start();
    let submit = |n| SubmitOrder {
        order_id: id(&format!("o{n}")),
        customer_id: id("c1"),
        submission_id: id("t1"),
    };
    assert_eq!(world.race((0..CALLERS).map(submit)).await, 1);
    assert_eq!(world.count("OrderSubmitted").await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_unit_of_a_product_goes_to_one_order() {
    let world = World::<inventory::Inventory>::start();
    let (product_id, units) = (id("lamp"), id("1"));
    world.seed(events![StockReceived { delivery_id: id("d1"), product_id, units }]).await;
    let reserve = |n| {
        let items = vec![Item { product_id: id("lamp"), units }];
        ReserveStock { order_id: id(&format!("o{n}")), items }
    };
    assert_eq!(world.race((0..CALLERS).map(reserve)).await, CALLERS);
    assert_eq!(world.count("StockReserved").await, 1);
    assert_eq!(world.count("StockMissing").await, CALLERS - 1);
}

fn subscribe(course: usize, student: usize) -> SubscribeStudent {
    let (course, student) = (format!("c{course}"), format!("s{student}"));
    SubscribeStudent { course_id: id(&course), student_id: id(&student) }
}

fn define(course: usize, capacity: u32) -> DefineCourse {
    DefineCourse { course_id: id(&format!("c{course}")), capacity }
}

#[tokio::test(start_paused = true)]
async fn the_last_seat_of_a_course_is_taken_once() {
    let world = World::<courses::Courses>::start();
    assert!(world.accepts(define(0, 1)).await);
    assert_eq!(world.race((0..CALLERS).map(|student| subscribe(0, student))).await, 1);
    assert_eq!(world.count("StudentSubscribed").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_student_who_may_take_one_more_course_gets_one() {
    let world = World::<courses::Courses>::start();
    for course in 0..CALLERS + COURSES_MAX {
        assert!(world.accepts(define(course, 100)).await);
    }
    for course in 0..COURSES_MAX - 1 {
        assert!(world.accepts(subscribe(CALLERS + course, 0)).await);
    }
    assert_eq!(world.race((0..CALLERS).map(|course| subscribe(course, 0))).await, 1);
    assert_eq!(world.count("StudentSubscribed").await, COURSES_MAX);
}
