//! The page of commands: what each slice did and cost, for whom, and where commands had conflicts.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use maud::{Markup, html};
use ringfence_aws::{Clock, ms_of_rfc3339};
use ringfence_core::{rfc3339, visible};

use crate::frame::{self, Problem, ago, boundary_url, chip, given, slice_url, url};
use crate::node::slice_kind;
use crate::site::Site;
use ringfence_cli::commands::{FunctionLines, OutcomeKind, UNKNOWN};
use ringfence_cli::shown::cut;
use ringfence_cli::stats::{OfBoundary, SliceStats, Stats, since};

const PATH: &str = "/commands";
/// The times that pages offer.
pub(crate) const TIMES: [&str; 4] = ["15m", "1h", "24h", "7d"];
/// The time that they show first.
pub(crate) const TIME: &str = "1h";
/// The page shows so many kinds of failures, and so many characters of each cause.
const FAILURES_MAX: usize = 50;
const CAUSE_CHARS_MAX: usize = 300;
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
        let until_ms = Clock::system().now_ms();
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let since_ms = until_ms.saturating_sub(time_ms);
        let lines = site.flags.commands.all_since(since_ms).await?;
        let stats = Stats::of(&lines.commands, since_ms, until_ms);
        html! {
            (times(PATH, within))
            @if lines.are_cut() { p.note { "There were more; those from " (stats.since) " to " (stats.until) " were read." } }
            @if stats.slices.is_empty() { p.note { "No command in this time." } }
            @else { (slices(&site, &stats)) }
            (failures(&site, &failures_of(&lines)))
            @if !stats.slices.is_empty() {
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

/// Equal failures or rejections of a function.
#[derive(Debug, PartialEq)]
struct Failure<'l> {
    function: &'l str,
    outcome: &'l str,
    cause: &'l str,
    count: u64,
    last_ms: u64,
}

/// The failures and rejections in these lines, the latest first.
fn failures_of(FunctionLines { commands, runs }: &FunctionLines) -> Vec<Failure<'_>> {
    let of_commands = commands.iter().filter_map(|line| match line.kind() {
        OutcomeKind::Failed | OutcomeKind::Rejected => {
            Some((&*line.slice, &*line.outcome, &line.cause, line.at_ms()))
        }
        _ => None,
    });
    let of_runs = runs.iter().filter_map(|run| {
        Some((run.failed_function.as_deref()?, "failed", &run.cause, run.at_ms()))
    });
    let mut found = BTreeMap::new();
    for (function, outcome, cause, at_ms) in of_commands.chain(of_runs) {
        let cause = cause.as_deref().unwrap_or_default();
        let (count, last_ms) = found.entry((function, outcome, cause)).or_insert((0, 0));
        *count += 1;
        *last_ms = at_ms.max(*last_ms);
    }
    let failure = |((function, outcome, cause), (count, last_ms))| Failure {
        function,
        outcome,
        cause,
        count,
        last_ms,
    };
    let mut found: Vec<_> = found.into_iter().map(failure).collect();
    found.sort_by_key(|failure| Reverse(failure.last_ms));
    found
}

fn failures(site: &Site, all: &[Failure<'_>]) -> Markup {
    if all.is_empty() {
        return html! {};
    }
    html! {
        h2 #failures { "Failures and rejections" }
        div.wide tabindex="0" role="region" aria-label="Failures and rejections" {
            table.figures {
                thead {
                    tr { @for column in ["Function", "Outcome", "Cause", "Times", "Last"] { th scope="col" { (column) } } }
                }
                tbody {
                    @for it in all.iter().take(FAILURES_MAX) {
                        tr {
                            th scope="row" {
                                (link(site, it.function))
                                @if site.trouble.is_some() {
                                    " " a href=(url(frame::LOG_PATH, [("function", it.function)])) { "log" }
                                }
                            }
                            td { (it.outcome) } td { (cut(it.cause, CAUSE_CHARS_MAX)) }
                            td.number { (it.count) } td { (ago(it.last_ms)) }
                        }
                    }
                }
            }
        }
        @if all.len() > FAILURES_MAX { p.note { "These are the latest " (FAILURES_MAX) " of " (all.len()) "." } }
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
        div.wide tabindex="0" role="region" aria-label="Commands by principal" {
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
    use ringfence_cli::commands::RunLine;

    use super::*;

    #[test]
    fn a_cell_is_as_hot_as_its_count_is_great_and_any_conflict_shows() {
        let classes = |most| [0, 1, most / 2, most].map(|count| heat(count, most));
        assert_eq!(classes(1_000), [0, 1, 5, 9]);
        assert_eq!(classes(2), [0, 5, 5, 9]);
        assert_eq!(heat(0, 0), 0);
    }

    #[test]
    fn equal_failures_are_one_and_the_latest_come_first() {
        let at = |second| format!("1970-01-01T00:00:0{second}.000Z");
        let line = |second, outcome, cause| {
            let line = serde_json::json!({
                "timestamp": at(second), "slice": "lend", "outcome": outcome, "attempts": 1, "duration_ms": 1,
                "requests": 1, "read_units": 0.5, "write_units": 1.0, "cause": cause,
            });
            serde_json::from_value(line).expect("a line")
        };
        let commands = vec![
            line(1, "rejected", Some("IsLent")),
            line(2, "rejected", Some("IsLent")),
            line(3, "accepted", None),
            line(3, "malformed", Some("no JSON")),
            line(4, "rejected", Some("IsLost")),
        ];
        let run = |function: Option<&str>| RunLine {
            timestamp: at(3),
            failed_function: function.map(str::to_owned),
            ..RunLine::default()
        };
        let lines = FunctionLines { commands, runs: vec![run(Some("lend")), run(None)] };
        let found =
            failures_of(&lines).into_iter().map(|it| (it.outcome, it.cause, it.count, it.last_ms));
        let expected = [
            ("rejected", "IsLost", 1, 4_000),
            ("failed", "", 1, 3_000),
            ("rejected", "IsLent", 2, 2_000),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
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
