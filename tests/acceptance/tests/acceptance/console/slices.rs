//! Checks of the pages of slices and of boundaries.

use serde_json::json;

use super::browser::Browser;
use super::site::Site;

/// True once the main part has this text.
fn has_text(text: &str) -> String {
    format!("document.querySelector('main').innerText.includes({})", json!(text))
}

pub(crate) async fn a_command_is_explained_before_it_is_sent(browser: &Browser, site: &Site) {
    browser.open(&site.url("/slices")).await;
    browser.follow("define-course").await;
    browser.until(&has_text("courseId:…")).await;
    let course = browser.find("input[name='f.courseId']").await;
    assert_eq!(course.filled().await, "rust-101", "the sample fills the form");
    browser.push("Explain").await;
    browser.until(&has_text("What it would do now")).await;
    for text in [
        "It is accepted.",
        "CourseDefined as courseId:rust-101/1",
        "puts CourseDefined, if slot 1 is free",
        "0.5 read units in 1 request, 1 write unit in 1 request",
    ] {
        assert!(
            browser.value::<bool>(&has_text(text)).await,
            "{text}: {}",
            browser.text("main").await
        );
    }
    assert_eq!(site.count("CourseDefined", "rust-101").await, 0, "nothing is written");

    browser.push("Send").await;
    browser.until(&has_text("It was decided 1 time")).await;
    let page = browser.text("main").await;
    for text in ["Accepted", "0.5 read units and 1 write unit."] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert_eq!(site.count("CourseDefined", "rust-101").await, 1);

    browser.push("Explain").await;
    browser.until(&has_text("It is rejected")).await;
    assert!(browser.value::<bool>(&has_text("Nothing.")).await);
    browser.follow("courseId:rust-101").await;
    browser.until(&has_text("Its next slot is 2.")).await;
    let page = browser.text("main").await;
    for text in ["courses/define-course", "courses/subscribe-student", "courseId:rust-101/1"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    browser.follow("CourseDefined").await;
    // The event may not be in the index yet.
    browser.until("location.reload() || document.querySelector('.flow') !== null").await;
}

pub(crate) async fn a_field_that_is_wrong_is_named(browser: &Browser, site: &Site) {
    browser.open(&site.url("/slices/courses/define-course")).await;
    let capacity = browser.find("input[name='f.capacity']").await;
    capacity.fill("many").await;
    browser.push("Explain").await;
    browser.until("document.querySelector('[role=alert]') !== null").await;
    let alert = browser.text("[role=alert]").await;
    assert!(alert.starts_with("capacity: must be"), "{alert}");
    let capacity = browser.find("input[name='f.capacity']").await;
    assert_eq!(capacity.filled().await, "many", "what was written stays");
}

pub(crate) async fn every_slice_has_a_form_that_takes_its_sample(
    browser: &Browser,
    site: &Site,
    count: usize,
) {
    browser.open(&site.url("/slices")).await;
    let links = "[...document.querySelectorAll('main .slices th a')].map(link => link.getAttribute('href'))";
    let slices: Vec<String> = browser.value(links).await;
    assert_eq!(slices.len(), count, "{slices:?}");
    // A script does it, because a browser takes long to show so many pages.
    let explained = format!(
        "(async () => {{
            const read = async url => new DOMParser().parseFromString(await (await fetch(url)).text(), 'text/html');
            const all = [];
            for (const slice of {}) {{
                const form = (await read(slice)).querySelector('form.command');
                const fields = new URLSearchParams(new FormData(form, form.querySelector('button')));
                const below = (await read(`${{slice}}?${{fields}}`)).querySelector('[aria-live]');
                all.push([slice, form.checkValidity(), below.querySelector('h2').textContent, below.textContent]);
            }}
            return all;
        }})()",
        json!(slices)
    );
    let explained: Vec<(String, bool, String, String)> = browser.value(&explained).await;
    assert_eq!(explained.len(), count);
    for (slice, is_valid, head, below) in explained {
        assert!(is_valid && head == "What it would do now", "{slice}: {is_valid}, {below}");
    }
}
