//! Every slice's cases, which its own tests run in memory, on DynamoDB, and what its role must allow for
//! them.

use std::collections::BTreeSet;

use ringfence_aggregate_log::Command;
use ringfence_aggregate_log::kit::Case;
use ringfence_local::template::{Access, Role, Template, excess};
use tokio::sync::OnceCell;

use crate::stack::{Stack, TABLE};

/// A slice's role, and what its cases need of it.
type Needs = OnceCell<(Role, BTreeSet<Access>)>;

/// Runs each case on a table of its own, finds the table in order afterwards, and holds the requests
/// against the slice's role in the template.
async fn check<C>(cases: Vec<Case<C>>) -> (Role, BTreeSet<Access>)
where
    C: Command<Rejection: PartialEq>,
{
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
    (role, needed)
}

macro_rules! slices {
    ($($slice:ident)*) => {
        /// What each slice needs of its role, found once.
        #[allow(non_upper_case_globals)]
        mod needs {
            $(pub(super) static $slice: super::Needs = super::Needs::const_new();)*
        }

        $(
            #[tokio::test]
            async fn $slice() {
                needs::$slice.get_or_init(|| check(::$slice::cases())).await;
            }
        )*

        #[tokio::test]
        async fn a_role_allows_what_its_slices_need_together_and_no_more() {
            let all = [$(needs::$slice.get_or_init(|| check(::$slice::cases())).await),*];
            assert_eq!(excess(all), BTreeSet::new());
        }
    };
}

slices! {
    register_customer rename_customer change_customer_email deactivate_customer transfer_points
}
