//! The page of commands: what each slice did and cost, for whom, and where commands had conflicts.

use std::sync::Arc;

use axum::extract::{Query, State};
use maud::{Markup, html};
use ringfence_aws::ms_of_rfc3339;
use ringfence_core::{rfc3339, visible};

use crate::frame::{self, Problem, boundary_url, chip, given, slice_url, url};
use crate::node::slice_kind;
use crate::site::Site;
use ringfence_cli::commands::{LINES_MAX, UNKNOWN};
use ringfence_cli::stats::{OfBoundary, SliceStats, Stats, since};

const PATH: &str = "/commands";
/// The times that pages offer.
pub(crate) const TIMES: [&str; 4] = ["15m", "1h", "24h", "7d"];
/// The time that they show first.
pub(crate) const TIME: &str = "1h";
/// The hottest class of the heat map's cells. The coldest is 0.
const HOTTEST: u64 = 9;

/// Links to the same page for each of its times.
pub(crate) fn times(path: &str, within: &str) -> Markup {
    html! {
        nav.pages aria-label="How far to look back" {
            @for time in TIMES {
                a href=(url(path, [("within", time)])) aria-current=[(time == within).then_some("true")] {
                    "Last " (time)
                }
            }
        }
    }
}

pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Markup, Problem> {
    let within = given(&parameters, "within").unwrap_or(TIME);
    let time = since(within).map_err(|wrong| Problem::bad(format!("within: {wrong}.")))?;
    let main = if site.flags.commands.are_known() {
        let stats = Stats::read(&site.flags.commands, time).await?;
        html! {
            (times(PATH, within))
            @if stats.slices.is_empty() { p.note { "No command in this time." } }
            @if stats.cut { p.note { "There were more; these are the first " (LINES_MAX) " that were read." } }
            @if !stats.slices.is_empty() {
                (slices(&site, &stats))
                h2 { "Commands by principal" }
                (principals(&stats))
                h2 { "Conflicts by boundary" }
                (heat_map(&stats))
            }
        }
    } else {
        html! { p { "Not known: " (UNKNOWN) "." } }
    };
    Ok(frame::page(&site, PATH, "Commands", None, &main))
}

fn slices(site: &Site, stats: &Stats) -> Markup {
    let columns = [
        "Slice",
        "Commands",
        "Reactions",
        "Rejected",
        "Malformed",
        "Key reused",
        "Failed",
        "Conflicts",
        "Retries",
        "Read units each",
        "Write units each",
        "Longest ms",
    ];
    html! {
        div.wide tabindex="0" role="region" aria-label="Slices" {
            table.figures {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody {
                    @for (slice, of) in &stats.slices { tr { th scope="row" { (link(site, slice)) } (of_slice(of)) } }
                }
            }
        }
    }
}

/// The name of a slice, with a link to its page if this stack has the slice.
pub(crate) fn link(site: &Site, slice: &str) -> Markup {
    match site.lists.stack.slices().find(|(_, info)| info.name == slice) {
        Some((context, info)) => {
            let url = slice_url(&format!("{}/{slice}", context.name));
            chip(slice_kind(context, info), slice, &url)
        }
        None => html! { (slice) },
    }
}

fn of_slice(of: &SliceStats) -> Markup {
    let SliceStats {
        commands,
        reactions,
        rejected,
        malformed,
        key_reused,
        failed,
        conflicts,
        retries,
        ..
    } = of;
    let counts = [commands, reactions, rejected, malformed, key_reused, failed, conflicts, retries];
    html! {
        @for count in counts { td.number { (count) } }
        @for units in [of.read_units, of.write_units] { td.number { (format!("{:.2}", of.each(units))) } }
        td.number { (of.longest_ms) }
    }
}

fn principals(stats: &Stats) -> Markup {
    if stats.principals.is_empty() {
        return html! { p.note { "None." } };
    }
    html! {
        table.figures {
            thead { tr { th scope="col" { "Principal" } th.number scope="col" { "Commands" } } }
            tbody {
                @for (principal, commands) in &stats.principals {
                    tr { th scope="row" { (visible(principal)) } td.number { (commands) } }
                }
            }
        }
    }
}

/// A row for each boundary, with the number of its conflicts in each part of the period.
fn heat_map(stats: &Stats) -> Markup {
    if stats.conflicts.is_empty() {
        return html! { p.note { "No command met a conflict." } };
    }
    let most = stats.conflicts.iter().flat_map(|of| of.parts).max().unwrap_or_default();
    let begins = begins(stats);
    html! {
        div.wide tabindex="0" role="region" aria-label="Conflicts by boundary and time" {
            table.figures.heat {
                thead {
                    tr {
                        th scope="col" { "Boundary" }
                        th scope="col" { "All" }
                        @for begin in &begins { th scope="col" { (begin[11..16]) } }
                    }
                }
                tbody {
                    @for OfBoundary { boundary, conflicts, parts } in &stats.conflicts {
                        tr {
                            th scope="row" { a href=(boundary_url(boundary)) { (boundary) } }
                            td.number { (conflicts) }
                            @for count in parts { td class={ "number heat-" (heat(*count, most)) } { (count) } }
                        }
                    }
                }
            }
        }
        p.note { "Each column is a part of the time from " (stats.since) " to " (stats.until) ", by its begin in UTC." }
    }
}

/// When the parts of the period begin: RFC 3339.
fn begins(stats: &Stats) -> Vec<String> {
    let ms = |text: &str| ms_of_rfc3339(text).unwrap_or_default();
    let (since, until) = (ms(&stats.since), ms(&stats.until));
    let parts = stats.conflicts.first().map_or(1, |of| of.parts.len()) as u64;
    (0..parts).map(|part| rfc3339(since + (until - since) * part / parts)).collect()
}

/// The class of a count: 0 for none, up to [`HOTTEST`] for the most.
fn heat(count: u64, most: u64) -> u64 {
    (count * HOTTEST).div_ceil(most.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_as_hot_as_its_count_is_great_and_any_conflict_shows() {
        let classes = |most| [0, 1, most / 2, most].map(|count| heat(count, most));
        assert_eq!(classes(1_000), [0, 1, 5, 9]);
        assert_eq!(classes(2), [0, 5, 5, 9]);
        assert_eq!(heat(0, 0), 0);
    }

    #[test]
    fn the_heat_map_shows_counts_as_text_and_leads_to_the_boundary() {
        let mut parts = [0; 24];
        (parts[0], parts[23]) = (1, 3);
        let boundary = "productId:<p&1>".to_owned();
        let stats = Stats {
            since: "2024-06-23T00:00:00.000Z".to_owned(),
            until: "2024-06-23T00:24:00.000Z".to_owned(),
            cut: false,
            slices: [].into(),
            principals: vec![],
            conflicts: vec![OfBoundary { boundary, conflicts: 4, parts }],
        };
        let page = heat_map(&stats).into_string();
        for shown in [
            r#"<a href="/boundary?id=productId%3A%3Cp%261%3E">productId:&lt;p&amp;1&gt;</a>"#,
            r#"<td class="number heat-3">1</td>"#,
            r#"<td class="number heat-0">0</td>"#,
            r#"<td class="number heat-9">3</td>"#,
            r#"<th scope="col">00:23</th>"#,
        ] {
            assert!(page.contains(shown), "{shown}: {page}");
        }
    }
}
