//! Requests and units of the same commands on each log, as the tables' meters count them.
//!
//! Events are as small as the domain makes them, without metadata, and there is no idempotency key. An existing account
//! has a hundred events.

use ringfence_aggregate_log::{self as aggregates, AggregateKey, Push, PushPlace, Version};
use ringfence_aws::Meter;
use ringfence_core::kit::id;
use ringfence_core::{
    Append, Context, Envelope, EventLog, LogKind, LogName, LogOf, Never, NewEvent, OnLog, Outcome,
    Slice,
};
use ringfence_document_log::{Cache, Load};
use ringfence_log::Log;
use ringfence_three_logs::{aggregate, dcb, document};

use crate::stack::Stack;

/// The deposits of an existing account, after its first event.
const DEPOSITS: [i32; 99] = [1; 99];

/// Requests that read and write, and the units of table and index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    pub(crate) requests: (u32, u32),
    pub(crate) read: f64,
    pub(crate) write: f64,
}

pub(crate) const fn cost(reads: u32, writes: u32, read: f64, write: f64) -> Option<Cost> {
    Some(Cost { requests: (reads, writes), read, write })
}

/// A command, and its cost on the DCB log, the aggregate log and the document log.
pub(crate) type Row = (&'static str, [Option<Cost>; 3]);

pub(crate) const ROWS: [Row; 6] = [
    ("open an account", [cost(1, 1, 0.5, 1.0), cost(1, 1, 1.0, 2.0), cost(1, 1, 0.5, 1.0)]),
    ("withdraw", [cost(1, 1, 2.5, 1.0), cost(1, 1, 4.0, 1.0), cost(1, 1, 0.5, 1.0)]),
    ("withdraw, warm", [cost(0, 1, 0.0, 1.0), cost(0, 1, 0.0, 1.0), cost(0, 1, 0.0, 1.0)]),
    (
        "withdraw too much: rejected",
        [cost(2, 0, 3.5, 0.0), cost(1, 0, 4.0, 0.0), cost(2, 0, 1.5, 0.0)],
    ),
    ("transfer", [cost(2, 1, 5.0, 4.0), cost(2, 1, 8.0, 4.0), None]),
    (
        "open five new accounts, without a decision",
        [cost(5, 1, 2.5, 10.0), cost(0, 1, 0.0, 15.0), cost(0, 5, 0.0, 5.0)],
    ),
];

/// The meter's counts while `operation` runs.
pub(crate) async fn metered(meter: &Meter, operation: impl Future<Output = ()>) -> Option<Cost> {
    let before = meter.snapshot();
    operation.await;
    let used = meter.snapshot().since(&before);
    let units = used.total();
    cost(used.reads, used.writes, units.read, units.write)
}

/// The cost on a log with a hundred events for each account.
async fn on<S: Slice<Context: Context<Log: Log<S>>>>(
    accounts: &[&str],
    warm: bool,
    command: S,
    accepts: bool,
) -> Option<Cost> {
    let (stack, envelope, log) = (Stack::start().await, Envelope::default(), LogOf::<S>::KIND);
    let (on, meter) = LogOf::<S>::open(stack.table(log), usize::from(warm)).expect(S::NAME);
    // An append has at most a hundred actions. In a document, the number of appends decides which events are in the
    // Tip.
    let at_once = if log == LogKind::Documents { 1 } else { 50 };
    for account in accounts {
        for events in dcb::facts::history_of(account, &DEPOSITS).chunks(at_once) {
            on.add(events.to_vec(), &envelope).await.expect("appended");
        }
    }
    let run = async || {
        let handled = on.handle(&command, &envelope).await.expect("settled");
        assert_eq!(matches!(handled.outcome, Outcome::Accepted(_)), accepts);
        assert_eq!(handled.attempts, 1);
    };
    if warm {
        run().await;
    }
    metered(&meter, run()).await
}

async fn open() -> [Option<Cost>; 3] {
    let account_id = || id("ada");
    [
        on(&[], false, dcb::open::Open { account_id: account_id() }, true).await,
        on(&[], false, aggregate::open::Open { account_id: account_id() }, true).await,
        on(&[], false, document::open::Open { account_id: account_id() }, true).await,
    ]
}

async fn withdraw(warm: bool, amount: u32, accepts: bool) -> [Option<Cost>; 3] {
    let (accounts, account_id) = (["ada"], || id("ada"));
    let on_dcb_log = dcb::withdraw::Withdraw { account_id: account_id(), amount };
    let on_aggregate_log = aggregate::withdraw::Withdraw { account_id: account_id(), amount };
    let on_document_log = document::withdraw::Withdraw { account_id: account_id(), amount };
    [
        on(&accounts, warm, on_dcb_log, accepts).await,
        on(&accounts, warm, on_aggregate_log, accepts).await,
        on(&accounts, warm, on_document_log, accepts).await,
    ]
}

async fn transfer() -> [Option<Cost>; 3] {
    let accounts = ["ada", "bob"];
    let on_dcb_log = dcb::transfer::Transfer { from: id("ada"), to: id("bob"), amount: 1 };
    let on_aggregate_log =
        aggregate::transfer::Transfer { from: id("ada"), to: id("bob"), amount: 1 };
    [
        on(&accounts, false, on_dcb_log, true).await,
        on(&accounts, false, on_aggregate_log, true).await,
        None,
    ]
}

/// One transaction on the first two logs, and five appends on the document log. The DCB log looks up the last slots for
/// the transaction.
async fn open_five() -> [Option<Cost>; 3] {
    let (stack, envelope) = (Stack::start().await, Envelope::default());
    let names = ["a", "b", "c", "d", "e"];
    let (dcb, aggregates) = (stack.dcb(), stack.aggregates());
    let on_dcb = async {
        let events = names.iter().flat_map(|name| dcb::facts::history_of(name, &[])).collect();
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        dcb.append(append).await.expect("appended");
    };
    let on_aggregates = async {
        let opened = || aggregates::NewAggregateEvent {
            event_type: "Opened".to_owned(),
            payload: None,
            metadata: None,
            timestamp_ms: None,
        };
        let push = |name| {
            let key = AggregateKey::new(aggregate::Accounts::NAME, name).expect("a name");
            Push { key, place: PushPlace::After(Version::NONE), events: vec![opened()] }
        };
        let pushed = aggregates.table().push_event_group(names.map(push).to_vec()).await;
        pushed.expect("pushed");
    };
    let category = stack.documents(Cache::none());
    let on_documents = async {
        for name in names {
            let command = document::open::Open { account_id: id(name) };
            let decide = |account: &_| {
                let opened = command.decide(account, &envelope.context)?;
                Ok::<_, Never>(opened.into_iter().map(NewEvent::from).collect())
            };
            let opened = category.transact(name, Load::Empty, &envelope, decide).await;
            opened.expect("settled");
        }
    };
    [
        metered(dcb.meter(), on_dcb).await,
        metered(aggregates.table().meter(), on_aggregates).await,
        metered(category.log().store().meter(), on_documents).await,
    ]
}

#[tokio::test]
async fn each_command_has_the_cost_on_the_page() {
    let measured = [
        open().await,
        withdraw(false, 1, true).await,
        withdraw(true, 1, true).await,
        withdraw(false, 1_000, false).await,
        transfer().await,
        open_five().await,
    ];
    assert_eq!(measured, ROWS.map(|(_, costs)| costs), "measured, expected");
}
