//! Checks of the pages.

use std::time::Instant;

use ringfence_harness::bound;

use super::browser::Browser;
use super::site::Site;

/// Pages of the shop that the navigation does not name.
pub(crate) const BELOW: [&str; 4] = [
    "/events/1",
    "/slices/ordering/place-order?f.orderId=o-1&f.productIds=mug",
    "/views/orders",
    "/map/ordering",
];

/// True once a row has this text.
fn has_row(text: &str) -> String {
    format!(
        "[...document.querySelectorAll('tbody tr')].some(row => row.textContent.includes('{text}'))"
    )
}

pub(crate) async fn a_new_event_appears_by_itself(browser: &Browser, site: &Site) {
    browser.open(site.api()).await;
    assert_eq!(browser.text("h1").await, "Overview", "the root of the API leads to the console");
    let is_well = "document.querySelector('.verdict').innerText === 'All is well'";
    browser.until(is_well).await;
    browser.run("document.querySelector('#overview h2').id = 'old'; return look()").await;
    assert!(browser.value::<bool>(&format!("!window.old && {is_well}")).await, "it looks again");
    browser.follow("Events").await;
    browser.find("form.filter").await;
    site.define_course("warm").await;
    browser.until(&has_row("warm")).await;
    site.define_course("hot").await;
    let answered = Instant::now();
    browser.until(&has_row("hot")).await;
    let after = answered.elapsed();
    let first = browser.text("tbody tr:first-child").await;
    assert!(first.contains("hot"), "the newest is first: {first}");
    assert_eq!(browser.text("[role=status]").await, "2 new events.");
    eprintln!("a new event appeared {after:?} after the answer");
}

pub(crate) async fn only_events_that_the_filter_wants_appear(browser: &Browser, site: &Site) {
    browser.open(&site.url("/events")).await;
    let tag = browser.find("input[name=tag]").await;
    tag.fill("courseId:mine").await;
    browser.find("form.filter button").await.click().await;
    browser.until("location.search.includes('mine') && document.readyState === 'complete'").await;
    browser.until("document.querySelectorAll('tbody tr').length === 0").await;
    site.define_course("other").await;
    site.define_course("mine").await;
    browser.until(&has_row("mine")).await;
    assert_eq!(browser.value::<usize>("document.querySelectorAll('tbody tr').length").await, 1);
}

pub(crate) async fn the_flow_leads_from_each_event_to_each_other(browser: &Browser, site: &Site) {
    site.add_product("mug", "Mug").await;
    browser.open(&site.url("/events?type=CatalogProductSynced")).await;
    browser.until(&has_row("Mug")).await;
    browser.follow("CatalogProductSynced").await;
    browser.find(".flow").await;
    let chips = "[...document.querySelectorAll('.flow .chip')].map(chip => chip.textContent)";
    let flow: Vec<String> = browser.value(chips).await;
    let parts = ["add-product", "ProductAdded", "sync-catalog-product", "CatalogProductSynced"];
    let place = |part| flow.iter().position(|chip| chip.ends_with(part));
    let places = parts.map(|part| place(part).unwrap_or_else(|| panic!("no {part}: {flow:?}")));
    assert!(places.is_sorted(), "causes come first: {flow:?}");
    let here = "document.querySelector('.flow [aria-current]').textContent";
    assert_eq!(browser.value::<String>(here).await, "event CatalogProductSynced");
    browser.find(".flow a.event:not([aria-current])").await.click().await;
    browser.until("document.querySelector('h1').innerText === 'ProductAdded'").await;
    assert_eq!(browser.value::<String>(here).await, "event ProductAdded");
    let again: Vec<String> = browser.value(chips).await;
    assert_eq!(again, flow, "the flow is the same from each of its events");
}

pub(crate) async fn a_deadline_is_on_the_axis_until_it_is_cleared(browser: &Browser, site: &Site) {
    let opened = async |event_type: &str| {
        browser.open(&site.url(&format!("/events?type={event_type}"))).await;
        browser.until(&format!("location.reload() || {}", has_row(event_type))).await;
        browser.follow(event_type).await;
        browser.find(".flow").await;
    };
    let shows = |after: &str, text: &str| {
        format!(
            "location.reload() || [...document.querySelectorAll('.flow li')].some(({{ textContent }}) => \
             textContent.startsWith('{after}') && textContent.includes('{text}'))"
        )
    };
    site.send_sample("inventory", "receive-stock").await;
    site.send_sample("inventory", "reserve-stock").await;
    opened("StockReserved").await;
    browser.until(&shows("+0 ms", "sets a deadline for reaction inventory/release-stock")).await;
    browser.until(&shows("+15 min", "order-2 is due in 1")).await;
    site.send_sample("signups", "initiate-sign-up").await;
    opened("SignUpInitiated").await;
    browser.until(&shows("+1 h", "is due in 59 min")).await;
    site.send_sample("signups", "confirm-sign-up").await;
    browser.until(&shows("+0 ms", "has no deadline any more")).await;
}

/// Returns the pages that show hostile text, as soon as each of them does.
pub(crate) async fn hostile_text_reaches_every_page(browser: &Browser, site: &Site) -> Vec<String> {
    browser.open(&site.url("/events")).await;
    let hostile = site.take_hostile_text().await;
    browser.until(&has_row("turned")).await;
    let named = ["/", "/lanes", "/dead-letters", "/trouble", "/commands"].map(str::to_owned);
    for page in hostile.iter().chain(&named) {
        browser.open(&site.url(page)).await;
        browser.until("document.body.textContent.includes('turned') || setTimeout(() => location.reload(), 300) && false").await;
    }
    hostile
}

pub(crate) async fn trouble_shows_the_routes(browser: &Browser, site: &Site) {
    browser.open(&site.url("/events")).await;
    browser.follow("Trouble").await;
    browser.until("document.querySelectorAll('#routes li').length > 0").await;
    let without_script = "(() => {
        const page = new XMLHttpRequest();
        page.open('GET', '/trouble', false);
        page.send();
        return page.responseText;
    })()";
    let page: String = browser.value(without_script).await;
    assert!(page.contains("/courses/define-course"), "{page}");
}

/// The page loads nothing: it works, although its policy allows no request.
pub(crate) async fn the_api_is_shown_by_one_file(browser: &Browser, site: &Site) {
    browser.open(&site.url("/api")).await;
    browser.find("[data-path='/ordering/place-order'] a").await.click().await;
    browser.until("document.querySelector('main').innerText.includes('NotTheCustomer')").await;
    let loaded = "performance.getEntriesByType('resource').map(file => file.name)";
    assert_eq!(browser.value::<Vec<String>>(loaded).await, [""; 0]);
    let asked = "fetch('/').then(() => 'answered', error => error.name)";
    assert_eq!(browser.value::<String>(asked).await, "TypeError", "the policy allows no request");
    browser.follow("Console").await;
    browser.until("document.querySelector('h1').innerText === 'Overview'").await;
}

pub(crate) async fn a_failed_batch_is_redriven(browser: &Browser, site: &Site) {
    site.keep_failed_batch("PublishEvents");
    browser.open(&site.url("/dead-letters")).await;
    assert!(browser.text("main").await.contains("aws/batch"));
    browser.push("Redrive all of PublishEvents").await;
    browser.until("document.querySelector('main').innerText.includes('1 done, 0 left.')").await;
    assert_eq!(site.failed_batches("PublishEvents"), 0);
    browser.follow("Back").await;
    browser.until("document.querySelector('h1').innerText === 'Dead letters'").await;
    assert!(!browser.text("main").await.contains("aws/batch"));
}

pub(crate) async fn a_view_is_rebuilt(browser: &Browser, site: &Site) {
    browser.open(&site.url("/views")).await;
    browser.follow("catalog-products").await;
    browser.until("document.querySelector('main').innerText.includes('mug')").await;
    browser.push("Rebuild").await;
    browser.until("document.querySelector('main').innerText.includes('Back')").await;
    let ended = browser.text("main").await;
    assert!(!ended.contains("failed"), "{ended}");
    browser.follow("Back").await;
    browser.until("document.querySelector('main').innerText.includes('mug')").await;
    let page = browser.text("main").await;
    assert!(page.contains("Generation\n2"), "the new generation is served: {page}");
}

pub(crate) async fn a_project_shows_its_features_its_claims_and_what_is_ready(
    browser: &Browser,
    site: &Site,
) {
    for slice in ["init-project", "create-feature", "claim-edge"] {
        site.send_sample("projects", slice).await;
    }
    let has = |text: &str| format!("document.querySelector('main').innerText.includes('{text}')");
    browser.open(&site.url("/projects")).await;
    browser.until("location.reload() || document.querySelector('main li a') !== null").await;
    browser.find("main li a").await.click().await;
    browser.until(&has("Features")).await;
    browser.until(&format!("location.reload() || {}", has("minutes left"))).await;
    let page = browser.text("main").await;
    for text in ["InProgress", "Ready", "Claims", "epoch 1"] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

pub(crate) async fn a_wide_row_has_columns_and_a_narrow_one_is_stacked(
    browser: &Browser,
    site: &Site,
) {
    browser.open(&site.url("/events")).await;
    let columns = "getComputedStyle(document.querySelector('tbody tr')).gridTemplateColumns.split(' ').length";
    assert_eq!(browser.value::<usize>(columns).await, 6, "a wide row has columns");
    browser.resize(375, 740).await;
    assert_eq!(browser.value::<usize>(columns).await, 2, "a narrow row is stacked");
    browser.resize(1440, 900).await;
}

pub(crate) async fn the_keyboard_reaches_the_content_and_the_first_event(
    browser: &Browser,
    site: &Site,
) {
    browser.open(&site.url("/events")).await;
    let focused = "document.activeElement.innerText";
    browser.press("Tab", 9).await;
    assert_eq!(browser.value::<String>(focused).await, "Skip to the content");
    browser.press("Enter", 13).await;
    assert!(browser.value::<bool>("location.hash === '#main'").await);
    let is_event = "/^\\/events\\/\\d+$/.test(document.activeElement.getAttribute('href'))";
    // A time field has a tab stop for each of its parts.
    for _ in 0..40 {
        browser.press("Tab", 9).await;
        if browser.value(is_event).await {
            browser.press("Enter", 13).await;
            return browser.until("document.querySelector('.flow') !== null").await;
        }
    }
    panic!("forty tabs lead to no event");
}

pub(crate) async fn print_leaves_out_what_is_for_the_screen(browser: &Browser, site: &Site) {
    browser.open(&site.url("/events")).await;
    browser.media("print", "prefers-color-scheme", "light").await;
    for (selector, is_printed) in
        [("body > header", false), ("form.filter", false), ("table", true)]
    {
        let shown =
            format!("getComputedStyle(document.querySelector('{selector}')).display !== 'none'");
        assert_eq!(browser.value::<bool>(&shown).await, is_printed, "{selector}");
    }
    browser.media("screen", "prefers-color-scheme", "light").await;
}

pub(crate) async fn pages_of_at_most_a_megabyte_lead_back_to_the_first_of_many_events(
    browser: &Browser,
    site: &Site,
) {
    let crowd = bound(150, 10_000);
    // An open page of events would show each of them.
    browser.open("about:blank").await;
    site.fill(crowd).await;
    browser.open(&site.url(&format!("/events?limit={crowd}"))).await;
    let rows = "document.querySelectorAll('tbody tr').length";
    let (first, loaded): (usize, f64) = browser
        .value(&format!("[{rows}, performance.getEntriesByType('navigation')[0].duration]"))
        .await;
    let laid_out = "(() => {
        const begin = performance.now();
        document.body.style.width = '900px';
        document.body.getBoundingClientRect();
        document.body.style.width = '';
        document.body.getBoundingClientRect();
        return performance.now() - begin;
    })()";
    let laid_out: f64 = browser.value(laid_out).await;
    eprintln!("{first} events: loaded in {loaded:.0} ms, laid out twice more in {laid_out:.0} ms");
    let (mut all, next) = (first, "document.querySelector('a[rel=next]')?.href ?? null");
    while let Some(further) = browser.value::<Option<String>>(next).await {
        browser.open(&further).await;
        all += browser.value::<usize>(rows).await;
    }
    assert!(all > crowd, "the first event is older than the crowd: {all}");
    browser.open(&site.url("/events?limit=50")).await;
    site.define_course("last").await;
    browser.until("document.querySelector('tbody tr').textContent.includes('last')").await;
    assert_eq!(browser.value::<usize>(rows).await, 50, "no more rows stay");
}
