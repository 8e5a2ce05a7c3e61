//! Every slice's cases, which its own tests run in memory, on DynamoDB, however the state is
//! stored, and what its role must allow for them.

use std::fmt::Debug;

use ringfence_carts::{Cart, Event};
use ringfence_document_log::kit::Case;
use ringfence_document_log::{Access, Cache, Category, Command, Decider, TipLimits};
use ringfence_local::template::Template;

use crate::stack::{Stack, TABLE, events_max, log};

/// Every access by which a cart is what its events say.
fn accesses() -> [Access<Cart>; 3] {
    let to_snapshot: fn(&Cart) -> Event = |cart| Event::CartSnapshot(cart.clone());
    [Access::Unoptimized, Cart::access(), Access::RollingState { to_snapshot }]
}

/// Runs each case on a stream of its own, with calves of one event and with none, and holds the requests
/// against the slice's role in the template.
async fn check<C>(cases: Vec<Case<C>>)
where
    C: Command<Decider = Cart, Rejection: Debug + PartialEq>,
{
    let stack = Stack::start().await;
    for (l, limits) in [events_max(1), TipLimits::default()].into_iter().enumerate() {
        for (a, access) in accesses().into_iter().enumerate() {
            let log = log(stack.store()).with_limits(limits);
            let category = Category::new(log, access, Cache::none()).expect("an enum");
            for (c, case) in cases.iter().enumerate() {
                case.check(&category, &format!("{l}-{a}-{c}")).await;
            }
        }
    }
    let template = Template::of_workspace().expect("template.yaml");
    let role = template.role(C::NAME, &[("DocumentTable", TABLE)]).expect("the slice's role");
    for exchange in stack.take() {
        let allowed = role.allow(&exchange.operation, &exchange.request);
        allowed.unwrap_or_else(|refused| panic!("{refused}"));
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
    add_to_cart change_quantity remove_from_cart check_out
}
