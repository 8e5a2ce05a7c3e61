//! Every slice's cases, which its own tests run in memory, on DynamoDB.

use ringfence::Slice;
use ringfence::kit::Case;

use crate::stack::Stack;

/// Runs each case on a table of its own, and finds the fences in order afterwards.
async fn check<S: Slice>(cases: Vec<Case<S>>) {
    for case in cases {
        let stack = Stack::start(S::catalog()).await;
        case.check(&stack.log(), |now_ms| stack.clock.set(now_ms)).await;
        stack.check_fences().await;
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
    add_product change_product_name change_product_price record_product_demand
    sync_catalog_product place_order cancel_order order_product
    define_course change_course_capacity subscribe_student unsubscribe_student
    register_account change_username close_account create_invoice initiate_sign_up confirm_sign_up
    order_products submit_order
}
