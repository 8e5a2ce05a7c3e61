//! Every slice's cases, which its own tests run in memory, on DynamoDB, and what its role must allow for
//! them.

use std::collections::BTreeSet;

use add_product::AddProduct;
use ringfence::kit::{Case, id};
use ringfence::{Access, Envelope, Slice};
use ringfence_catalog::Money;
use ringfence_local::template::{self, Role, Template, excess};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::stack::{Stack, TABLE, code};

/// A slice's role, and what its cases need of it.
type Needs = OnceCell<(Role, BTreeSet<template::Access>)>;

fn role<S: Slice>() -> Role {
    let template = Template::of_workspace().expect("template.yaml");
    template.role(S::NAME, &[("EventTable", TABLE)]).expect("the slice's role")
}

/// Runs each case on a table of its own, finds the fences in order afterwards, and holds the requests
/// against the slice's role in the template.
async fn check<S: Slice>(cases: Vec<Case<S>>) -> (Role, BTreeSet<template::Access>) {
    let role = role::<S>();
    let mut needed = planned::<S>(&role);
    for case in cases {
        let stack = Stack::start(S::catalog()).await;
        case.check(&stack.log(), |now_ms| stack.clock.set(now_ms)).await;
        needed.extend(asked(&stack, &role));
        stack.check_fences().await;
    }
    (role, needed)
}

/// What the requests since the last look need.
fn asked(stack: &Stack, role: &Role) -> BTreeSet<template::Access> {
    let asked = stack.wire.take().into_iter();
    let allowed = asked.map(|asked| role.allow(&asked.operation, &asked.request));
    allowed.flat_map(|allowed| allowed.unwrap_or_else(|refused| panic!("{refused}"))).collect()
}

/// What a refusal under an idempotency key needs; a case has no key.
async fn refused() -> (Role, BTreeSet<template::Access>) {
    let stack = Stack::start(AddProduct::catalog()).await;
    let (name, description) = (id("Lamp"), id(""));
    let add = AddProduct { product_id: id("p1"), name, description, price: Money::new(1, "EUR") };
    stack.accept(add.clone()).await;
    let _ = stack.wire.take();
    let envelope = Envelope { idempotency_key: Some("k".to_owned()), ..Envelope::default() };
    assert_eq!(code(&stack.run_with(&add, &envelope).await), "ProductAlreadyExists");
    let role = role::<AddProduct>();
    let needed = asked(&stack, &role);
    (role, needed)
}

/// What the reads need of whichever command of the slice, also of those that no case has.
fn planned<S: Slice>(role: &Role) -> BTreeSet<template::Access> {
    let catalog = S::catalog().expect("the catalog is free of contradictions");
    let plans = S::plans(&catalog).expect("the slice and its catalog agree");
    assert!(!plans.is_empty(), "a command of {} reads something", S::NAME);
    let reads = plans.iter().flat_map(|plan| &plan.reads);
    let queries = reads.map(|read| {
        let index = match &read.access {
            Access::TagIndex(tag) => Some(format!("tag_{}", tag.key)),
            Access::CompositeIndex(_) => Some("tag_composite".to_owned()),
            Access::Partition | Access::TagItems(_) | Access::TypeItems(_) => None,
        };
        json!({ "TableName": TABLE, "IndexName": index })
    });
    let allowed = queries.map(|query| role.allow("Query", &query));
    allowed.flat_map(|allowed| allowed.unwrap_or_else(|refused| panic!("{refused}"))).collect()
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
            assert_eq!(excess(all.into_iter().chain([&refused().await])), BTreeSet::new());
        }
    };
}

slices! {
    add_product change_product_name change_product_price record_product_demand
    sync_catalog_product place_order cancel_order order_product
    define_course change_course_capacity subscribe_student unsubscribe_student
    register_account change_username close_account create_invoice initiate_sign_up confirm_sign_up
    order_products submit_order
}
