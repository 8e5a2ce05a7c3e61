//! Checks of the pages.

use std::time::Instant;

use ringfence_harness::bound;

use super::browser::Browser;
use super::site::Site;

/// Pages of the shop that the navigation does not name.
pub(crate) const BELOW: [&str; 6] = [
    "/events/1",
    "/slices/ordering/place-order?f.orderId=o-1&f.productIds=mug",
    "/boundary?id=productId%3Amug",
    "/views/orders",
    "/search?q=productId%3Amug",
    "/nowhere",
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

pub(crate) async fn a_payload_of_html_is_shown_as_text(browser: &Browser, site: &Site) {
    let hostile =
        "<img src=x onerror=document.title='taken'><script>document.title='taken'</script>";
    browser.open(&site.url("/events?type=ProductAdded")).await;
    site.add_product("hostile", &format!("{hostile}\u{202e}\u{1b}[31m")).await;
    browser.until(&has_row("onerror")).await;
    browser.open(&site.url("/events?type=ProductAdded")).await;
    browser.follow("ProductAdded").await;
    browser.find("pre").await;
    assert!(browser.text("pre").await.contains(hostile), "{}", browser.text("pre").await);
    assert_eq!(browser.title().await, "ProductAdded · Ringfence");
    assert_eq!(browser.value::<usize>("document.images.length").await, 0);
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

pub(crate) async fn a_page_has_as_many_events_as_it_is_asked_for_and_no_more_stay(
    browser: &Browser,
    site: &Site,
) {
    // A page has 100 events, or as many as the URL sets, but at most a megabyte.
    let crowd = bound(150, 2_000);
    site.fill(crowd).await;
    browser.open(&site.url(&format!("/events?limit={crowd}"))).await;
    let rows = "document.querySelectorAll('tbody tr').length";
    assert_eq!(browser.value::<usize>(rows).await, crowd);
    let loaded = "performance.getEntriesByType('navigation')[0].duration";
    let loaded: f64 = browser.value(loaded).await;
    let anew = "(() => {
        const begin = performance.now();
        document.body.style.width = '900px';
        document.body.getBoundingClientRect();
        document.body.style.width = '';
        document.body.getBoundingClientRect();
        return performance.now() - begin;
    })()";
    let anew: f64 = browser.value(anew).await;
    eprintln!("{crowd} events: loaded in {loaded:.0} ms, laid out twice more in {anew:.0} ms");
    site.define_course("last").await;
    browser.until("document.querySelector('tbody tr').textContent.includes('last')").await;
    assert_eq!(browser.value::<usize>(rows).await, crowd, "no more rows stay");
}
