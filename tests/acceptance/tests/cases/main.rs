//! The cases of every slice on DynamoDB, and the permissions of roles for them and for the functions that read the logs
//! and the index.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

extern crate ringfence_core as ringfence; // the derive macros use this name

mod contention;
mod deadlines;
mod dry_runs;
mod in_order;
mod process;
mod queue;
mod samples;

use ringfence_acceptance::{Application, applications};
use ringfence_testing::{
    check_api, check_bad_input, check_callers, check_cases, check_role_of_index_events,
    check_role_of_project_views, check_role_of_query_views, check_roles_of_reactors,
};
use stack::Shop;

#[tokio::test]
async fn the_cases_of_every_slice_hold_and_a_role_allows_what_its_slices_need_and_no_more() {
    assert!(stack::stack().slices().count() > 20, "the list has lost slices");
    check_cases::<Shop>().await;
}

#[test]
fn the_list_says_which_types_each_slice_reads_and_writes() {
    for Application { stack, .. } in applications() {
        let known = stack.event_types();
        for (context, slice) in stack.slices() {
            let types = || slice.reads.iter().chain(&slice.writes);
            assert!(types().all(|name| known.contains(&**name)), "{}/{}", context.name, slice.name);
            assert!(!slice.writes.is_empty(), "{}/{} writes nothing", context.name, slice.name);
        }
    }
    let stack = stack::stack();
    let of = |name| stack.slices().find(|(_, slice)| slice.name == name).unwrap();
    let (_, subscribe) = of("subscribe-student");
    let course = ["CourseCapacityChanged", "CourseDefined"];
    let student = ["StudentSubscribed", "StudentUnsubscribed"];
    let mut reads = subscribe.reads.clone();
    reads.sort();
    assert_eq!(reads, [course, student].concat());
    assert_eq!(subscribe.writes, ["StudentSubscribed"]);
    let (_, check_out) = of("check-out");
    assert_eq!(check_out.writes, ["CheckedOut"]);
    // Only these leave items, which an import of older events has to make.
    let with_items = stack.slices().filter(|(_, slice)| (slice.has_item)());
    let with_items: Vec<_> = with_items.map(|(_, slice)| slice.name).collect();
    assert_eq!(with_items, ["record-product-demand", "create-invoice", "submit-order"]);
}

#[test]
fn every_slice_names_the_field_and_its_limit() {
    check_bad_input::<Shop>();
}

#[test]
fn a_slice_about_things_of_people_looks_at_its_caller_or_says_that_anybody_may() {
    check_callers::<Shop>();
}

#[test]
fn the_documents_of_the_api_fit_the_stack() {
    check_api::<Shop>();
}

#[tokio::test]
async fn the_role_of_index_events_allows_what_it_asks_and_no_more() {
    check_role_of_index_events::<Shop>().await;
}

#[tokio::test]
async fn the_role_of_project_views_allows_what_it_asks_and_no_more() {
    check_role_of_project_views::<Shop>().await;
}

#[tokio::test]
async fn the_role_of_query_views_allows_what_it_asks_and_no_more() {
    check_role_of_query_views::<Shop>().await;
}

#[tokio::test]
async fn the_role_of_a_reactor_allows_what_it_asks_and_no_more() {
    check_roles_of_reactors::<Shop>().await;
}
