//! The page of health: readers of the index, dead letters, statistics of commands, and conflicts.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use axum::extract::{Query, State};
use futures::future::{join5, try_join_all};
use maud::{Markup, html};
use ringfence_aws::ms_of_rfc3339;
use ringfence_core::{rfc3339, visible};
use ringfence_feed::Reader;
use ringfence_reactors::ReactorStanding;
use ringfence_views::{Registered, ViewStanding};

use crate::dead_letters;
use crate::due;
use crate::frame::{self, Cost, Problem, boundary_url, given, slice_url, url};
use crate::lanes;
use crate::part::{Part, Standing};
use crate::site::Site;
use crate::views::{Reached, UNNAMED};
use ringfence_cli::commands::{LINES_MAX, UNKNOWN};
use ringfence_cli::stats::{OfBoundary, SliceStats, Stats, since};

/// The times that the page offers.
const TIMES: [&str; 3] = ["15m", "1h", "24h"];
const TIME: &str = "1h";
/// The hottest class of the heat map's cells. The coldest is 0.
const HOTTEST: u64 = 9;

/// One line that says that all is well, or what is not.
fn line(parts: &[&Part]) -> Markup {
    let (mut well, mut wrong) = (Vec::new(), Vec::new());
    for part in parts {
        match &part.standing {
            Standing::Well(what) => well.push(*what),
            Standing::Wrong(what) => wrong.push(&**what),
            Standing::Unknown => {}
        }
    }
    html! {
        p.standing role="status" {
            @match (&wrong[..], &well[..]) {
                ([], []) => { "Nothing is known: no flag names the tables, queues, buckets or logs." }
                ([], well) => { strong { "All is well: " } (well.join(", ")) "." }
                (wrong, _) => { strong.bad { (wrong.join(", ")) "." } }
            }
        }
    }
}

/// The parameters of the URL.
struct Asked<'a> {
    /// The period of the statistics, as text.
    within: &'a str,
    /// Whether the page shows all readers, or only the readers of the stack's lists.
    all_readers: bool,
}

impl Asked<'_> {
    fn url(&self) -> String {
        let readers = if self.all_readers { "all" } else { "" };
        url("/health", [("within", self.within), ("readers", readers)])
    }
}

pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Markup, Problem> {
    let within = given(&parameters, "within").unwrap_or(TIME);
    let all_readers = given(&parameters, "readers") == Some("all");
    let asked = Asked { within, all_readers };
    let time = since(within).map_err(|wrong| Problem::bad(format!("within: {wrong}.")))?;
    let (readers, lanes, due, kept, figures) = join5(
        readers(&site, &asked),
        lanes::all(&site),
        due::all(&site),
        dead_letters::all(&site),
        figures(&site, time),
    )
    .await;
    let (readers, parked, cost) = match readers {
        Ok(shown) => shown,
        Err(error) => {
            let unknown = Part::unknown(html! { p { "Not known." } });
            (Part::failed("the readers", &error), unknown, Cost::default())
        }
    };
    let main = html! {
        (line(&[&readers, &parked, &lanes, &due, &kept, &figures]))
        h2 { "Readers of the index" }
        (readers.markup)
        h2 { "Views" }
        (parked.markup)
        h2 { "Lanes" }
        (lanes.markup)
        h2 { "Deadlines" }
        (due.markup)
        h2 { "Dead letters and failed batches" }
        (kept.markup)
        h2 #commands { "Commands" }
        nav.pages aria-label="How far to look back" {
            @for time in TIMES {
                a href=(Asked { within: time, ..asked }.url()) aria-current=[(time == within).then_some("true")] {
                    "Last " (time)
                }
            }
        }
        (figures.markup)
    };
    Ok(frame::page(&site, "/health", "Health", cost, &main))
}

/// The readers of the stack's lists, or all, with their lag; the parked rows and events of views; and the units that
/// this read.
async fn readers(site: &Site, asked: &Asked<'_>) -> Result<(Part, Part, Cost)> {
    let index = site.index();
    let (Some(views), Some(checkpoints), Some(reactors)) =
        (site.views(&index), site.checkpoints(), site.reactors())
    else {
        let unknown = || Part::unknown(html! { p { (UNNAMED) } });
        return Ok((unknown(), unknown(), Cost::default()));
    };
    let names = site.lists.stack.rows();
    let standing = try_join_all(names.iter().map(|view| views.standing(view.name))).await?;
    let standing: Vec<_> = standing.into_iter().flatten().collect();
    let parked = parked(&standing);
    let mut readers = if asked.all_readers {
        checkpoints.readers().await?
    } else {
        standing.into_iter().flat_map(|it| [it.served, it.built]).flatten().collect()
    };
    let names = ringfence_cli::lanes::readers(&site.lists.stack);
    let standing = try_join_all(names.iter().map(|name| reactors.standing(name))).await?;
    for (name, ReactorStanding { checkpoint, updated_at, .. }) in iter::zip(names, standing) {
        let name = name.to_owned();
        readers.extend(checkpoint.map(|checkpoint| Reader { name, checkpoint, updated_at }));
    }
    readers.sort_by(|a, b| a.name.cmp(&b.name));
    let end = index.end().await?;
    let reached = readers.iter().map(|reader| Reached::of(Some(reader), &index, end));
    let reached = try_join_all(reached).await?;
    let all = Asked { all_readers: true, ..*asked };
    let markup = html! {
        div.wide tabindex="0" role="region" aria-label="Readers" {
            table.figures {
                thead {
                    tr {
                        @for column in ["Reader", "Checkpoint", "Lag", "Since (UTC)"] { th scope="col" { (column) } }
                    }
                }
                tbody {
                    @for (Reader { name, updated_at, .. }, reached) in readers.iter().zip(&reached) {
                        tr {
                            th scope="row" { (name) }
                            td.number { (reached.checkpoint) }
                            td { (reached.place) }
                            td { time datetime=(updated_at) { (updated_at) } }
                        }
                    }
                }
            }
        }
        @if readers.is_empty() { p { "No reader has a checkpoint yet." } }
        p.note {
            "The index ends at checkpoint " (end) ". "
            @if !asked.all_readers {
                "These are the readers of the views, reactors and ordered automations. "
                a href=(all.url()) { "Look for all readers" }
                "; that reads and pays for the whole table of views."
            }
        }
    };
    let [of_index, of_views, of_rows] = views.meters();
    let behind = reached.iter().filter(|reached| reached.checkpoint < end).count();
    let what = ["reader is behind", "readers are behind"];
    let part = Part::of(markup, "every reader is at the end of the index", behind, what);
    Ok((part, parked, [of_index, of_views, of_rows, checkpoints.meter(), reactors.meter()].into()))
}

/// The parked rows and events of views.
fn parked(views: &[ViewStanding]) -> Part {
    let sum = |of: fn(&Registered) -> u64| views.iter().map(|it| of(&it.registered)).sum::<u64>();
    let (rows, events) = (sum(|it| it.parked), sum(|it| it.parked_events));
    let markup =
        html! { p { a href="/views" { (rows) " rows and " (events) " events parked" } "." } };
    let wrong = usize::try_from(rows + events).unwrap_or(usize::MAX);
    let what = ["row or event is parked", "rows and events are parked"];
    Part::of(markup, "no row and no event is parked", wrong, what)
}

/// Statistics of commands and conflicts in a period.
async fn figures(site: &Site, within: Duration) -> Part {
    if !site.commands.are_known() {
        return Part::unknown(html! { p { "Not known: " (UNKNOWN) "." } });
    }
    let stats = match Stats::read(&site.commands, within).await {
        Err(error) => return Part::failed("what commands did", &error),
        Ok(stats) => stats,
    };
    let markup = html! {
        @if stats.cut { p.note { "There were more; these are the first " (LINES_MAX) " that were read." } }
        (slices(site, &stats))
        h2 { "Commands by principal" }
        (principals(&stats))
        h2 { "Conflicts by boundary" }
        (heat_map(&stats))
    };
    let failed: u64 = stats.slices.values().map(|of| of.failed).sum();
    let failed = usize::try_from(failed).unwrap_or(usize::MAX);
    Part::of(markup, "no command failed", failed, ["command failed", "commands failed"])
}

fn slices(site: &Site, stats: &Stats) -> Markup {
    if stats.slices.is_empty() {
        return html! { p { "No command in this time." } };
    }
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
fn link(site: &Site, slice: &str) -> Markup {
    match site.lists.stack.slices().find(|(_, info)| info.name == slice) {
        Some((context, _)) => {
            html! { a href=(slice_url(&format!("{}/{slice}", context.name))) { (slice) } }
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
    html! {
        table.figures {
            thead { tr { th scope="col" { "Principal" } th scope="col" { "Commands" } } }
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
        return html! { p { "No command met a conflict." } };
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
