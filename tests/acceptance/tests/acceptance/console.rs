//! The console in a real browser, on the stack of the template.

mod browser;
mod pages;
mod shop;
mod slices;

use self::browser::Browser;
use self::shop::Shop;

/// One test, because a stack and a browser take long to start. Each part says in its name what holds.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_works_in_a_browser() {
    let Some(browser) = Browser::start().await else { return };
    let shop = Shop::start().await;
    pages::a_new_event_appears_by_itself(&browser, &shop).await;
    pages::only_events_that_the_filter_wants_appear(&browser, &shop).await;
    pages::the_flow_leads_from_each_event_to_each_other(&browser, &shop).await;
    pages::a_payload_of_html_is_shown_as_text(&browser, &shop).await;
    pages::trouble_shows_the_routes_and_health_what_is_kept(&browser, &shop).await;
    pages::a_failed_batch_is_redriven(&browser, &shop).await;
    pages::a_view_is_rebuilt(&browser, &shop).await;
    pages::a_project_shows_its_features_its_claims_and_what_is_ready(&browser, &shop).await;
    slices::a_command_is_explained_before_it_is_sent(&browser, &shop).await;
    slices::a_field_that_is_wrong_is_named(&browser, &shop).await;
    slices::every_slice_has_a_form_that_takes_its_sample(&browser, &shop).await;
    pages::every_page_fits_a_narrow_and_a_wide_screen(&browser, &shop).await;
    pages::every_page_is_dark_where_the_browser_asks_for_it(&browser, &shop).await;
    pages::the_keyboard_reaches_the_content_and_the_first_event(&browser, &shop).await;
    pages::print_leaves_out_what_is_for_the_screen(&browser, &shop).await;
    pages::ten_thousand_events_are_on_one_page_and_no_more_stay(&browser, &shop).await;
}
