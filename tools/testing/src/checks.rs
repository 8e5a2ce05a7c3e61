//! The tests that every stack has.

/// Makes the tests of a stack. `$stack` is the type that lists its contexts. If a part is forgotten, one of the tests
/// names it, with the line to write. The package of the tests depends on `tokio`, with its feature `macros`.
#[macro_export]
macro_rules! checks {
    ($stack:ty) => {
        #[tokio::test]
        async fn the_cases_of_every_slice_hold_and_a_role_allows_what_its_slices_need_and_no_more()
        {
            $crate::check_cases::<$stack>().await;
        }

        #[test]
        fn every_slice_names_the_field_and_its_limit() {
            $crate::check_bad_input::<$stack>();
        }

        #[test]
        fn every_function_has_its_part_of_the_template_and_its_samples() {
            $crate::check_functions::<$stack>();
        }

        #[test]
        fn every_context_is_listed_and_every_slice_stands_alone_and_has_a_binary() {
            $crate::check_rooms::<$stack>();
        }

        #[test]
        fn released_names_still_exist_and_every_reader_reads_them() {
            $crate::check_schemas::<$stack>();
        }

        #[test]
        fn a_slice_about_things_of_people_looks_at_its_caller_or_says_that_anybody_may() {
            $crate::check_callers::<$stack>();
        }

        #[test]
        fn the_documents_of_the_api_fit_the_stack() {
            $crate::check_api::<$stack>();
        }

        #[test]
        fn every_role_allows_what_its_functions_need_and_no_more() {
            $crate::check_roles::<$stack>();
        }

        #[tokio::test]
        async fn the_role_of_index_events_allows_what_it_asks_and_no_more() {
            $crate::check_role_of_index_events::<$stack>().await;
        }

        #[tokio::test]
        async fn the_role_of_project_views_allows_what_it_asks_and_no_more() {
            $crate::check_role_of_project_views::<$stack>().await;
        }

        #[tokio::test]
        async fn the_role_of_a_reactor_allows_what_it_asks_and_no_more() {
            $crate::check_roles_of_reactors::<$stack>().await;
        }

        #[tokio::test]
        async fn the_role_of_query_views_allows_what_it_asks_and_no_more() {
            $crate::check_role_of_query_views::<$stack>().await;
        }
    };
}
