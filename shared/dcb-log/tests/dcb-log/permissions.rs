//! The runbook lists exactly the permissions that `verify` and `repair` need.

use std::collections::BTreeSet;

use ringfence_aws::Item;

use crate::items::{catalog, moved};
use crate::stack::Stack;
use crate::unindexed::{delete, index_items};
use crate::verify::{Damage, number, repair, verify};

/// The actions that the runbook names for a command.
fn named(command: &str) -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/runbook.md");
    let runbook = std::fs::read_to_string(path).expect("the runbook");
    let line = runbook.lines().skip_while(|line| !line.starts_with("<!-- permissions:"));
    let mut line = line.take_while(|line| !line.starts_with("<!-- end of permissions"));
    let line = line.find(|line| line.starts_with(&format!("`{command}`"))).expect("its line");
    let actions = line.split('`').filter_map(|word| word.strip_prefix("dynamodb:"));
    actions.map(str::to_owned).collect()
}

/// The actions that the requests since the last call need.
fn asked(stack: &Stack) -> BTreeSet<String> {
    let operations = stack.wire.take().into_iter().map(|exchange| exchange.operation);
    operations.map(|operation| operation.replace("TransactGetItems", "GetItem")).collect()
}

#[tokio::test]
async fn the_runbook_names_the_permissions_of_verify_and_repair() {
    let stack = Stack::start(catalog()).await;
    stack.seed(vec![moved("p", "x", "y"), moved("p", "x", "y")]).await;
    let items = stack.items().await;
    // Without its first event, the partition has a gap.
    let is_first = |item: &&Item| item.contains_key("event") && item.contains_key("rest");
    delete(&stack, items.iter().find(is_first).expect("an event")).await;
    delete(&stack, &index_items(&stack).await[0]).await;
    Damage::Set("cnt#Moved", number(7)).inflict(&stack, "depot:x").await;
    let _ = asked(&stack);
    // The command line reads the table's keys first.
    let described = || BTreeSet::from(["DescribeTable".to_owned()]);
    assert!(!verify(&stack).await.in_order());
    assert_eq!(&asked(&stack) | &described(), named("verify"));
    let report = repair(&stack).await;
    assert_eq!((report.differences.len(), report.unindexed.len()), (0, 0), "{report:?}");
    // An update sets a missing attribute.
    let update = BTreeSet::from(["UpdateItem".to_owned()]);
    assert_eq!(&(&asked(&stack) | &update) | &described(), &named("verify") | &named("repair"));
}
