//! A program awaits commands on all logs inside its own futures.

use ringfence_core::kit::id;
use ringfence_core::{Context, Decisions, Envelope, Outcome, handle};
use ringfence_document_log::{self as documents, Cache};
use ringfence_three_logs::{aggregate, dcb, document};

use crate::stack::Stack;

/// Opens an account on each log.
async fn open_on_each(stack: &Stack) {
    let envelope = Envelope::default();
    let on_dcb = async {
        let (log, catalog) = (stack.dcb(), dcb::Accounts::catalog().expect("no contradiction"));
        let open = dcb::open::Open { account_id: id("ada") };
        handle(&log, &catalog, &Decisions::new(0), &open, &envelope).await.expect("an answer")
    };
    let on_aggregates = async {
        let open = aggregate::open::Open { account_id: id("ada") };
        let catalog = aggregate::Accounts::catalog().expect("no contradiction");
        let (log, none) = (stack.aggregates(), Decisions::new(0));
        handle(&log, &catalog, &none, &open, &envelope).await.expect("an answer")
    };
    let on_documents = async {
        let open = document::open::Open { account_id: id("ada") };
        let category = stack.documents(Cache::none());
        documents::handle(&category, &open, &envelope).await.expect("an answer")
    };
    let on_dcb = on_dcb.await.outcome;
    assert!(matches!(&on_dcb, Outcome::Accepted(events) if events.len() == 1), "{on_dcb:?}");
    let on_aggregates = on_aggregates.await.outcome;
    assert!(matches!(&on_aggregates, Outcome::Accepted(events) if events.len() == 1));
    let on_documents = on_documents.await.outcome;
    assert!(matches!(&on_documents, Outcome::Accepted(events) if events.len() == 1));
}

/// The compiler proves layer by layer that a spawned future can be sent, and stops at 128 layers. An application whose
/// own futures have fewer layers must not need a `recursion_limit` because of the logs' futures.
#[allow(clippy::redundant_async_block, reason = "the nesting is what is tested")]
#[tokio::test]
async fn a_spawned_task_awaits_commands_on_all_logs_in_nested_blocks() {
    let stack = Stack::start().await;
    let task = async move {
        let four = async { async { async { open_on_each(&stack).await }.await }.await };
        let eight = async { async { async { four.await }.await }.await };
        async { eight.await }.await
    };
    tokio::spawn(task).await.expect("an account is opened on each log");
}
