//! Requests and units of the same commands on each log, as the tables' meters count them.
//!
//! Events are as small as the domain makes them, without metadata, and no idempotency key is given.
//! An account that is there has a hundred events.

use std::num::NonZeroUsize;

use ringfence::{Append, Decisions, Envelope, EventLog, Outcome, Slice, Writes, handle};
use ringfence_aggregate_log::{
    Aggregate, Command, CommandError, Draft, EventStore, Place, PushEvent, PushEventGroup, execute,
};
use ringfence_document_log::{self as documents, Cache, Load};
use ringfence_dynamo::{Meter, Retry};
use ringfence_three_logs::account::{Act, Action, Fact, Refusal, Transfer};
use ringfence_three_logs::dcb::Written;
use ringfence_three_logs::document::Stored;
use ringfence_three_logs::{aggregate, dcb};

use crate::cases::{act, deposited, opened, transfer};
use crate::stack::Stack;

/// Events of an account that is there.
const EVENTS: usize = 100;

/// Requests that read and write, and the units of table and index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    pub(crate) requests: (u32, u32),
    pub(crate) read: f64,
    pub(crate) write: f64,
}

const fn cost(reads: u32, writes: u32, read: f64, write: f64) -> Option<Cost> {
    Some(Cost { requests: (reads, writes), read, write })
}

/// A command, and its cost on the DCB log, the aggregate log and the document log.
pub(crate) type Row = (&'static str, [Option<Cost>; 3]);

pub(crate) const ROWS: [Row; 6] = [
    ("open an account", [cost(1, 1, 0.5, 4.0), cost(1, 1, 1.0, 2.0), cost(1, 1, 0.5, 1.0)]),
    ("withdraw", [cost(1, 1, 3.0, 4.0), cost(1, 1, 4.0, 1.0), cost(1, 1, 0.5, 1.0)]),
    ("withdraw, warm", [cost(0, 1, 0.0, 4.0), cost(1, 1, 4.0, 1.0), cost(0, 1, 0.0, 1.0)]),
    (
        "withdraw too much: refused",
        [cost(2, 0, 5.0, 0.0), cost(1, 0, 4.0, 0.0), cost(2, 0, 1.5, 0.0)],
    ),
    ("transfer", [cost(2, 1, 6.0, 8.0), cost(2, 1, 8.0, 4.0), None]),
    (
        "open five new accounts, without a read",
        [cost(0, 1, 0.0, 20.0), cost(0, 1, 0.0, 15.0), cost(0, 5, 0.0, 5.0)],
    ),
];

fn history(account: &str) -> Vec<Fact> {
    let deposits = std::iter::repeat_n(deposited(account, 1), EVENTS - 1);
    std::iter::once(opened(account)).chain(deposits).collect()
}

fn accepted(command: &Act) -> bool {
    command.action != Action::Withdraw(1_000)
}

/// What the meter counts while `operation` runs.
async fn metered(meter: &Meter, operation: impl Future<Output = ()>) -> Option<Cost> {
    let before = meter.snapshot();
    operation.await;
    let used = meter.snapshot().since(&before);
    let units = used.total();
    cost(used.reads, used.writes, units.read, units.write)
}

async fn on_dcb<S: Slice>(
    accounts: &[&str],
    warm: bool,
    command: S,
    accepts: bool,
) -> Option<Cost> {
    let (stack, envelope) = (Stack::start().await, Envelope::default());
    let (log, catalog) = (stack.dcb(), dcb::catalog().expect("free of contradictions"));
    for account in accounts {
        // An append has at most a hundred actions.
        for facts in history(account).chunks(EVENTS / 2) {
            let event = |fact: &Fact| Written::from(fact.clone()).into_event().expect("JSON");
            let events = facts.iter().map(event).collect();
            let append = Append { events, seen: None, record: None, envelope: &envelope };
            log.append(append).await.expect("appended");
        }
    }
    let decisions = Decisions::new(usize::from(warm));
    let run = async || {
        let handled = handle(&log, &catalog, &decisions, &command, &envelope).await;
        let handled = handled.expect("settled");
        assert_eq!(matches!(handled.outcome, Outcome::Accepted(_)), accepts);
        assert_eq!(handled.attempts, 1);
    };
    if warm {
        run().await;
    }
    metered(log.meter(), run()).await
}

async fn on_aggregates<C>(accounts: &[&str], command: C, accepts: bool) -> Option<Cost>
where
    C: Command<Rejection = Refusal>,
{
    let stack = Stack::start().await;
    let log = stack.aggregates();
    for account in accounts {
        let key = aggregate::Accounts::key(account).expect("a name");
        for (fact, version) in history(account).into_iter().zip(1..) {
            let event = Draft::from(fact.event).encode().expect("JSON");
            log.push_event(&key, Place::Forced(version), event).await.expect("pushed");
        }
    }
    let run = async {
        let executed = execute(&log, &command, &Default::default(), Retry::default()).await;
        assert_eq!(executed.attempts, 1);
        match executed.outcome {
            Ok(_) => assert!(accepts),
            Err(CommandError::Rejected(_)) => assert!(!accepts),
            Err(CommandError::Log(error)) => panic!("{error:?}"),
        }
    };
    metered(log.meter(), run).await
}

async fn on_documents(accounts: &[&str], warm: bool, command: Act) -> Option<Cost> {
    let stack = Stack::start().await;
    let seeder = stack.documents(Cache::of(NonZeroUsize::MIN));
    let envelope = Envelope::default();
    for account in accounts {
        for fact in history(account) {
            let event = [Stored::from(fact.event)];
            let decide = |_: &_| Ok::<_, ()>(event.to_vec());
            seeder.transact(account, Load::Cached, &envelope, decide).await.expect("appended");
        }
    }
    let category = if warm { seeder } else { stack.documents(Cache::none()) };
    let load = if warm { Load::Cached } else { Load::Eventual };
    let run = async {
        let id = command.account_id.to_string();
        let context = &envelope.context;
        let decide = |account: &_| documents::Command::decide(&command, account, context);
        let transacted = category.transact(&id, load, &envelope, decide).await.expect("settled");
        let is_accepted = matches!(transacted.outcome, documents::Outcome::Accepted(_));
        assert_eq!(is_accepted, accepted(&command));
        assert_eq!(transacted.attempts, 1);
    };
    metered(category.log().store().meter(), run).await
}

async fn of_one(accounts: &[&str], warm: bool, action: Action) -> [Option<Cost>; 3] {
    let command = act("ada", action);
    let accepts = accepted(&command);
    [
        on_dcb(accounts, warm, command.clone(), accepts).await,
        on_aggregates(accounts, command.clone(), accepts).await,
        on_documents(accounts, warm, command).await,
    ]
}

async fn of_two(command: Transfer) -> [Option<Cost>; 3] {
    let accounts = ["ada", "bob"];
    [
        on_dcb(&accounts, false, command.clone(), true).await,
        on_aggregates(&accounts, command, true).await,
        None,
    ]
}

/// All or none on the first two; five appends on the document log.
async fn of_five() -> [Option<Cost>; 3] {
    let (stack, envelope) = (Stack::start().await, Envelope::default());
    let names = ["a", "b", "c", "d", "e"];
    let (dcb, aggregates) = (stack.dcb(), stack.aggregates());
    let on_dcb = async {
        let event = |name| Written::from(opened(name)).into_event().expect("JSON");
        let events = names.map(event).to_vec();
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        dcb.append(append).await.expect("appended");
    };
    let on_aggregates = async {
        let push = |name| {
            let account = Aggregate::<aggregate::Accounts>::new(
                aggregate::Accounts::key(name).expect("a name"),
            );
            account.push([opened(name).event]).expect("JSON")
        };
        aggregates.push_event_group(names.map(push).to_vec()).await.expect("pushed");
    };
    let category = stack.documents(Cache::none());
    let on_documents = async {
        for name in names {
            let command = act(name, Action::Open);
            let context = &envelope.context;
            let decide = |account: &_| documents::Command::decide(&command, account, context);
            let opened = category.transact(name, Load::Empty, &envelope, decide).await;
            opened.expect("settled");
        }
    };
    [
        metered(dcb.meter(), on_dcb).await,
        metered(aggregates.meter(), on_aggregates).await,
        metered(category.log().store().meter(), on_documents).await,
    ]
}

#[tokio::test]
async fn each_command_costs_what_the_page_says() {
    let measured = [
        of_one(&[], false, Action::Open).await,
        of_one(&["ada"], false, Action::Withdraw(1)).await,
        of_one(&["ada"], true, Action::Withdraw(1)).await,
        of_one(&["ada"], false, Action::Withdraw(1_000)).await,
        of_two(transfer("ada", "bob", 1)).await,
        of_five().await,
    ];
    assert_eq!(measured, ROWS.map(|(_, costs)| costs), "measured, expected");
}
