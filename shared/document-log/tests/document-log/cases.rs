//! Every slice's cases, which its own tests run in memory, on DynamoDB, however the state is
//! stored, and what its role must allow for them.

use std::collections::BTreeSet;
use std::fmt::Debug;

use ringfence_carts::{Cart, Event};
use ringfence_document_log::kit::Case;
use ringfence_document_log::{Access, Cache, Category, Command, Decider, TipLimits};
use ringfence_local::template::{self, Role, Template, excess};
use tokio::sync::OnceCell;

use crate::stack::{Stack, TABLE, events_max, log};

/// A slice's role, and what its cases need of it.
type Needs = OnceCell<(Role, BTreeSet<template::Access>)>;

/// Every access by which a cart is what its events say.
fn accesses() -> [Access<Cart>; 3] {
    let to_snapshot: fn(&Cart) -> Event = |cart| Event::CartSnapshot(cart.clone());
    [Access::Unoptimized, Cart::access(), Access::RollingState { to_snapshot }]
}

/// Runs each case on a stream of its own, with calves of one event and with none, and holds the requests
/// against the slice's role in the template.
async fn check<C>(cases: Vec<Case<C>>) -> (Role, BTreeSet<template::Access>)
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
    let asked = stack.take().into_iter();
    let allowed = asked.map(|asked| role.allow(&asked.operation, &asked.request));
    let needed = allowed.flat_map(|allowed| allowed.unwrap_or_else(|refused| panic!("{refused}")));
    let needed = needed.collect();
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
    add_to_cart change_quantity remove_from_cart check_out
}
