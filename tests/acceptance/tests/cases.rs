//! The cases of every slice, in memory and on DynamoDB, and what the roles must allow for them.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;

use ringfence_local::template::{Template, excess};
use ringfence_testing::{Cases, Ran, check_bad_input};
use stack::Shop;

/// Every table has its logical id as its name.
const TABLES: [(&str, &str); 3] = [
    ("EventTable", "EventTable"),
    ("AggregateTable", "AggregateTable"),
    ("DocumentTable", "DocumentTable"),
];

#[tokio::test]
async fn the_cases_of_every_slice_hold_and_a_role_allows_what_its_slices_need_and_no_more() {
    let template = Template::of_workspace().unwrap();
    let ran = Cases::run::<Shop>(&template).await;
    assert!(ran.len() > 20, "{} slices", ran.len());
    let of_role = |Ran { slice, requests, .. }: Ran| {
        let role = template.role(slice, &TABLES).unwrap();
        let mut needed = BTreeSet::new();
        for (operation, request) in requests {
            let allowed = role.allow(&operation, &request);
            needed.extend(allowed.unwrap_or_else(|refused| panic!("{slice}: {refused}")));
        }
        (role, needed)
    };
    let all: Vec<_> = ran.into_iter().map(of_role).collect();
    assert_eq!(excess(&all), BTreeSet::new());
}

#[test]
fn every_slice_names_the_field_and_its_limit() {
    check_bad_input::<Shop>();
}
