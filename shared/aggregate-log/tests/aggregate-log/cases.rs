//! Every slice's cases, which its own tests run in memory, on DynamoDB, and what its role must allow for
//! them.

use std::collections::BTreeSet;

use ringfence_aggregate_log::Command;
use ringfence_aggregate_log::kit::Case;
use ringfence_local::template::Template;

use crate::stack::{Stack, TABLE};

/// Runs each case on a table of its own, finds the table in order afterwards, and holds the requests
/// against the slice's role in the template.
async fn check<C: Command<Rejection: PartialEq>>(cases: Vec<Case<C>>) {
    let template = Template::of_workspace().expect("template.yaml");
    let role = template.role(C::NAME, &[("AggregateTable", TABLE)]).expect("the slice's role");
    let mut needed = BTreeSet::new();
    assert!(!cases.is_empty());
    for case in cases {
        let stack = Stack::start().await;
        case.prepare(&stack.table()).await;
        let _ = stack.wire.take();
        case.check_prepared(&stack.table()).await;
        for exchange in stack.wire.take() {
            let allowed = role.allow(&exchange.operation, &exchange.request);
            needed.extend(allowed.unwrap_or_else(|refused| panic!("{refused}")));
        }
        assert!(stack.table().verify(&|_| {}).await.expect("a report").wrong.is_empty());
    }
    assert_eq!(role.excess(&needed), BTreeSet::new());
}

macro_rules! slices {
    ($($slice:ident)*) => {$(
        #[tokio::test]
        async fn $slice() {
            check(::$slice::cases()).await;
        }
    )*};
}

slices! {
    register_customer rename_customer change_customer_email deactivate_customer transfer_points
}
