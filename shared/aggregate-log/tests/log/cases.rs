//! Every slice's cases, which its own tests run in memory, on DynamoDB.

use ringfence_aggregate_log::Command;
use ringfence_aggregate_log::kit::Case;

use crate::stack::Stack;

/// Runs each case on a table of its own, and finds the table in order afterwards.
async fn check<C: Command<Rejection: PartialEq>>(cases: Vec<Case<C>>) {
    assert!(!cases.is_empty());
    for case in cases {
        let stack = Stack::start().await;
        case.check(&stack.table()).await;
        assert!(stack.table().verify(&|_| {}).await.expect("a report").wrong.is_empty());
    }
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
