//! What is forgotten is named by one of these, with the line to write.

use stack::Shop;

#[tokio::test]
async fn the_cases_of_every_slice_hold_and_a_role_allows_what_its_slices_need_and_no_more() {
    ringfence_testing::check_cases::<Shop>().await;
}

#[test]
fn every_slice_names_the_field_and_its_limit() {
    ringfence_testing::check_bad_input::<Shop>();
}

#[test]
fn every_function_has_its_part_of_the_template_and_its_samples() {
    ringfence_testing::check_functions::<Shop>();
}

#[test]
fn every_context_is_listed_and_every_slice_stands_alone_and_has_a_binary() {
    ringfence_testing::check_rooms::<Shop>();
}

#[test]
fn every_role_allows_what_its_functions_need_and_no_more() {
    ringfence_testing::check_roles::<Shop>();
}

#[tokio::test]
async fn the_role_of_index_events_allows_what_it_asks_and_no_more() {
    ringfence_testing::check_role_of_index_events().await;
}

#[tokio::test]
async fn the_role_of_project_views_allows_what_it_asks_and_no_more() {
    ringfence_testing::check_role_of_project_views().await;
}

#[tokio::test]
async fn the_role_of_query_views_allows_what_it_asks_and_no_more() {
    ringfence_testing::check_role_of_query_views().await;
}
