//! The specification's examples under contention: what a single run of a case can't show.

use accounts::AccountRegistered;
use accounts::change_username::ChangeUsername;
use accounts::register_account::RegisterAccount;
use futures::TryStreamExt;
use futures::future::{join, join_all};
use invoices::create_invoice::CreateInvoice;
use ordering::submit_order::SubmitOrder;
use ringfence::kit::id;
use ringfence::{
    Catalog, CatalogError, DcbContext, HandleError, Handled, Outcome, SequencedEvent, events,
};
use ringfence_dynamo::Clock;
use serde_json::Value;

use crate::stack::Stack;

/// Fewer than a command's attempts, so that the last of them still gets its turn.
const CALLERS: usize = 6;

async fn stack(catalog: Result<Catalog, CatalogError>) -> Stack {
    let mut stack = Stack::start(catalog).await;
    stack.clock = Clock::system();
    stack
}

fn accepted(handled: &[Result<Handled, HandleError>]) -> usize {
    let accepted = |handled: &&Result<Handled, HandleError>| match handled {
        Ok(handled) => matches!(handled.outcome, Outcome::Accepted(_)),
        Err(error) => panic!("{error:?}"),
    };
    handled.iter().filter(accepted).count()
}

#[tokio::test]
async fn invoices_written_at_once_have_numbers_without_gaps() {
    let stack = stack(invoices::Invoices::catalog()).await;
    let create = CreateInvoice { invoice_data: Value::Null };
    let handled = join_all((0..CALLERS).map(|_| stack.run(&create))).await;
    assert_eq!(accepted(&handled), CALLERS);
    let events: Vec<_> = stack.log().scan().try_collect().await.expect("a scan");
    let number = |event: &SequencedEvent| event.data["invoiceNumber"].as_u64();
    let mut numbers: Vec<_> = events.iter().filter_map(number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=CALLERS as u64).collect::<Vec<_>>());
    stack.check_fences().await;
}

#[tokio::test]
async fn a_username_that_many_want_goes_to_one() {
    let stack = stack(accounts::Accounts::catalog()).await;
    let commands: Vec<_> = (0..CALLERS)
        .map(|n| RegisterAccount { account_id: id(&format!("a{n}")), username: id("u1") })
        .collect();
    let handled = join_all(commands.iter().map(|command| stack.run(command))).await;
    assert_eq!(accepted(&handled), 1);
    stack.check_fences().await;
}

#[tokio::test]
async fn a_username_is_either_changed_to_or_registered() {
    let stack = stack(accounts::Accounts::catalog()).await;
    stack.seed(events![AccountRegistered { account_id: id("a1"), username: id("u1") }]).await;
    let change = ChangeUsername { account_id: id("a1"), username: id("u2") };
    let register = RegisterAccount { account_id: id("a2"), username: id("u2") };
    let (changed, registered) = join(stack.run(&change), stack.run(&register)).await;
    assert_eq!(accepted(&[changed, registered]), 1);
    stack.check_fences().await;
}

#[tokio::test]
async fn a_form_sent_many_times_at_once_is_one_order() {
    let stack = stack(ordering::Ordering::catalog()).await;
    let commands: Vec<_> = (0..CALLERS)
        .map(|n| SubmitOrder { order_id: id(&format!("o{n}")), submission_id: id("t1") })
        .collect();
    let handled = join_all(commands.iter().map(|command| stack.run(command))).await;
    assert_eq!(accepted(&handled), 1);
    assert_eq!(stack.count("OrderSubmitted").await, 1);
}
