//! Checks of the look of all pages, and of their use without a mouse, without colours, and without the script.

use std::fs;

use ringfence_local::workspace_root;
use serde_json::{Value, json};

use super::browser::Browser;
use super::site::Site;
use crate::contract;

/// The page that Swagger UI draws. It needs the script, and its inner part is not ours to check.
const API: &str = "/api";
/// A field of a time has a tab stop for each of its parts, so a page has more tab stops than elements.
const TABS_MAX: usize = 1_000;
/// Finds faults on the page, with all rows laid out: a row that is not seen has only an estimated height.
const FAULTS: &str = "(async () => {
    const all = new CSSStyleSheet();
    all.insertRule('tr { content-visibility: visible !important }');
    document.adoptedStyleSheets = [all];
    const rules = { 'target-size': { enabled: true } };
    const options = { resultTypes: ['violations'], rules };
    const { violations } = await axe.run({ exclude: [['#page']] }, options);
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html, any, all, none }) =>
        [id, html.slice(0, 200), ...[...any, ...all, ...none].map(({ message }) => message)].join(': ')));
})()";

/// Checks the diagrams of a stack's map with the parser of Mermaid.
pub(crate) async fn the_diagrams_of_the_map_are_mermaid(browser: &Browser, folder: &str) {
    let Some(mermaid) = contract::script("@mermaid-js/tiny").await else { return };
    let page = fs::read_to_string(workspace_root().join(folder).join("docs/map.md")).unwrap();
    let diagrams = page.split("```mermaid\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let diagrams: Vec<_> = diagrams.collect();
    for kind in ["eventmodeling", "flowchart"] {
        assert!(diagrams.iter().any(|diagram| diagram.starts_with(kind)), "{kind}: {page}");
    }
    browser.run(&mermaid).await;
    let faults = format!(
        "Promise.all({}.map(text => mermaid.parse(text).then(() => [], fault => [text, String(fault)])))",
        json!(diagrams)
    );
    let faults: Vec<Vec<String>> = browser.value(&faults).await;
    assert!(faults.concat().is_empty(), "{faults:#?}");
}

/// The pages of the navigation.
pub(crate) async fn pages(browser: &Browser, site: &Site) -> Vec<String> {
    browser.open(&site.url("/events")).await;
    let links = "[...document.querySelectorAll('body > header nav a')].map(link => link.getAttribute('href'))";
    browser.value(links).await
}

/// No rule of the style is about both size and colours, so each size is seen in one of the colours.
pub(crate) async fn every_page_is_accessible_in_each_size_and_colour(
    browser: &Browser,
    site: &Site,
    pages: &[String],
) {
    let axe = contract::script("axe-core/axe.min.js").await;
    let mut all = Vec::new();
    for page in pages {
        browser.open(&site.url(page)).await;
        if let Some(axe) = &axe {
            browser.run(axe).await;
        }
        for ((width, height), scheme) in [((390, 844), "dark"), ((1200, 900), "light")] {
            browser.resize(width, height).await;
            browser.media("screen", "prefers-color-scheme", scheme).await;
            if page != API {
                it_has_the_colours(browser, page, scheme == "dark").await;
            }
            let mut faults = too_wide(browser, width).await;
            if axe.is_some() {
                faults.extend(browser.value::<Vec<String>>(FAULTS).await);
            }
            let at = format!("{page:.60}, {width} pixels, {scheme}");
            all.extend(faults.into_iter().map(|fault| format!("{at}: {fault}")));
        }
        let hidden = "document.body.innerText.match(/[\\x00-\\x08\\x0b-\\x1f\\u202a-\\u202e\\u2066-\\u2069]/)";
        assert_eq!(
            browser.value::<Value>(hidden).await,
            Value::Null,
            "{page:.60} shows a control character"
        );
        let taken = "document.title === 'taken' || document.querySelector('[src=x], [onerror], main script') !== null";
        assert!(!browser.value::<bool>(taken).await, "{page:.60} takes text for markup");
    }
    assert!(all.is_empty(), "{all:#?}");
}

/// Waits for the style, without which a page is transparent.
async fn it_has_the_colours(browser: &Browser, page: &str, is_dark: bool) {
    let color = "getComputedStyle(document.body).backgroundColor";
    browser.until(&format!("{color} !== 'rgba(0, 0, 0, 0)'")).await;
    let bright =
        format!("{color}.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0)");
    let bright: u32 = browser.value(&bright).await;
    assert_eq!(bright < 3 * 64, is_dark, "{page}, where dark is {is_dark}: {bright}");
}

/// The elements that make the page wider than the screen.
async fn too_wide(browser: &Browser, width: u32) -> Vec<String> {
    let wide = format!(
        "document.documentElement.scrollWidth <= {width} ? [] : \
         [...document.body.querySelectorAll('*')].filter(element => \
         element.getBoundingClientRect().right > {width}).map(element => `too wide: ${{element.outerHTML.slice(0, 80)}}`)"
    );
    browser.value(&wide).await
}

pub(crate) async fn the_keyboard_reaches_everything_and_shows_where_it_is(
    browser: &Browser,
    site: &Site,
    pages: &[String],
) {
    let begin = "window.reached = new Set(), window.unseen = [], document.addEventListener('focusin', ({ target }) => {
        reached.add(target);
        const { outlineStyle, outlineWidth } = getComputedStyle(target);
        // A box of the map shows it by its border.
        if (target.closest('svg')) return;
        if (outlineStyle === 'none' || outlineWidth === '0px') unseen.push(target.outerHTML.slice(0, 120));
    }), 0";
    let left = "[...document.querySelectorAll('a[href], button, input, select, textarea, summary')].filter(element =>
        element.type !== 'hidden' && element.checkVisibility() && !reached.has(element)
    ).map(element => element.outerHTML.slice(0, 120))";
    for page in pages.iter().filter(|page| *page != API) {
        let page = if page == "/events" { "/events?limit=5" } else { page };
        browser.open(&site.url(page)).await;
        browser.value::<Value>(begin).await;
        for pressed in 0.. {
            browser.press("Tab", 9).await;
            // After the last element the focus leaves the page, and begins again.
            if pressed % 20 == 19 && browser.value::<usize>(&format!("{left}.length")).await == 0 {
                break;
            }
            if pressed == TABS_MAX {
                let left: Vec<String> = browser.value(left).await;
                panic!("{page:.60}: {TABS_MAX} tabs do not reach {left:#?}");
            }
        }
        let unseen: Vec<String> = browser.value("unseen").await;
        assert!(unseen.is_empty(), "{page} does not show the focus at {unseen:#?}");
    }
}

pub(crate) async fn every_page_works_without_the_script(
    browser: &Browser,
    site: &Site,
    pages: &[String],
) {
    browser.chromium("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
    for page in pages.iter().filter(|page| *page != API) {
        browser.open(&site.url(page)).await;
        let main = browser.text("main").await;
        assert!(main.lines().count() > 1, "{page} has nothing below its title: {main}");
    }
    browser.open(&site.url("/events?limit=5")).await;
    browser.find("form[role=search] input").await.fill("productId:mug").await;
    browser.push("Search").await;
    browser.find("main a[href*='productId%3Amug']").await;
    browser.chromium("Emulation.setScriptExecutionDisabled", json!({ "value": false })).await;
}
