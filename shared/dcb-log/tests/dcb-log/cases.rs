//! Every slice's cases, which its own tests run in memory, on DynamoDB, and what its role must allow for
//! them.

use std::collections::BTreeSet;

use ringfence::kit::Case;
use ringfence::{Access, Slice};
use ringfence_local::template::{self, Role, Template};
use serde_json::json;

use crate::stack::{Stack, TABLE};

/// Runs each case on a table of its own, finds the fences in order afterwards, and holds the requests
/// against the slice's role in the template.
async fn check<S: Slice>(cases: Vec<Case<S>>) {
    let template = Template::of_workspace().expect("template.yaml");
    let role = template.role(S::NAME, &[("EventTable", TABLE)]).expect("the slice's role");
    let mut needed = planned::<S>(&role);
    for case in cases {
        let stack = Stack::start(S::catalog()).await;
        case.check(&stack.log(), |now_ms| stack.clock.set(now_ms)).await;
        for exchange in stack.wire.take() {
            let allowed = role.allow(&exchange.operation, &exchange.request);
            needed.extend(allowed.unwrap_or_else(|refused| panic!("{refused}")));
        }
        stack.check_fences().await;
    }
    assert_eq!(role.excess(&needed), BTreeSet::new());
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
