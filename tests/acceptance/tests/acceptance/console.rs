//! The console in a real browser, on the stacks of this repository.

mod browser;
mod look;
mod pages;
mod site;
mod slices;

use self::browser::Browser;
use self::site::Site;
use crate::{PROJECTS, SHOP};

/// One test, because a stack and a browser take long to start. The name of each part says what it checks.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_of_the_shop_works_in_a_browser() {
    let Some(browser) = Browser::start().await else { return };
    let (browser, site) = (&browser, Site::start(SHOP, tools::console()).await);
    pages::a_new_event_appears_by_itself(browser, &site).await;
    pages::only_events_that_the_filter_wants_appear(browser, &site).await;
    pages::the_flow_leads_from_each_event_to_each_other(browser, &site).await;
    pages::a_deadline_is_on_the_axis_until_it_is_cleared(browser, &site).await;
    pages::trouble_shows_the_routes(browser, &site).await;
    pages::the_api_is_shown_by_one_file(browser, &site).await;
    pages::a_failed_batch_is_redriven(browser, &site).await;
    pages::a_view_is_rebuilt(browser, &site).await;
    slices::a_command_is_explained_before_it_is_sent(browser, &site).await;
    slices::a_field_that_is_wrong_is_named(browser, &site).await;
    let slices = stack::stack().slices().count();
    slices::every_slice_has_a_form_that_takes_its_sample(browser, &site, slices).await;
    look::the_diagrams_of_the_map_are_mermaid(browser, SHOP).await;
    let mut all = look::pages(browser, &site).await;
    all.extend(pages::BELOW.map(str::to_owned));
    pages::pages_of_at_most_a_megabyte_lead_back_to_the_first_of_many_events(browser, &site).await;
    let hostile = pages::hostile_text_reaches_every_page(browser, &site).await;
    look::every_page_is_accessible_in_each_size_and_colour(
        browser,
        &site,
        &[&all[..], &hostile].concat(),
    )
    .await;
    look::the_keyboard_reaches_everything_and_shows_where_it_is(browser, &site, &all).await;
    look::every_page_works_without_the_script(browser, &site, &all).await;
    pages::a_wide_row_has_columns_and_a_narrow_one_is_stacked(browser, &site).await;
    pages::the_keyboard_reaches_the_content_and_the_first_event(browser, &site).await;
    pages::print_leaves_out_what_is_for_the_screen(browser, &site).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_of_projects_works_in_a_browser() {
    let Some(browser) = Browser::start().await else { return };
    let site = Site::start(PROJECTS, projects_tools::console()).await;
    let (own, slices) = (["/projects".to_owned()], projects_stack::stack().slices().count());
    pages::a_project_shows_its_features_its_claims_and_what_is_ready(&browser, &site).await;
    slices::every_slice_has_a_form_that_takes_its_sample(&browser, &site, slices).await;
    look::every_page_is_accessible_in_each_size_and_colour(&browser, &site, &own).await;
}
