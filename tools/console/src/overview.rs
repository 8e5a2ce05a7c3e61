//! The first page: whether all is well, what the stack has, and what commands did.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Query, State};
use maud::{Markup, html};
use ringfence_aws::Clock;
use ringfence_cli::commands::UNKNOWN;
use ringfence_cli::deployments;
use ringfence_cli::stats::{PRICES_OF, dollars_of_units, since};
use ringfence_cli::verdict::{StackFault, StackVerdict, What};
use ringfence_core::rfc3339;

use crate::axis::duration;
use crate::commands::{TIME, TIMES, link, times};
use crate::curve::{Span, figure, number, spark};
use crate::frame::{self, Cost, Problem, ago, given, url};
use crate::last_look::LastLook;
use crate::series::{LastFlow, Parts, Series};
use crate::site::Site;
use crate::verdict;

/// The curves of a long time are read again after this part of it.
const KEPT_PART: u64 = 240;

pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Markup, Problem> {
    let within = given(&parameters, "within").unwrap_or(TIME);
    let within = TIMES.into_iter().find(|time| *time == within).ok_or_else(|| {
        Problem::bad(format!(
            "within: {within:?} is not a time of this page: {}.",
            TIMES.join(", ")
        ))
    })?;
    let ((verdict, has_looked), series) =
        futures::join!(verdict::find(&site), series(&site, within));
    let cost = match has_looked {
        true => Cost::of_reads(verdict.requests, verdict.read_units),
        false => Cost::default(),
    };
    let main = html! {
        div #overview data-refresh="" {
            (banner(&verdict))
            (tiles(&site, &verdict, series.as_ref().ok().and_then(Option::as_deref)))
            h2 { "What commands did" }
            (times("/", within))
            @match &series {
                Err(error) => p role="alert" { "The lines of commands can't be read: " (format!("{error:#}")) "." },
                Ok(None) => p.note { "Not known: " (UNKNOWN) "." },
                Ok(Some(series)) => (of_series(&site, series)),
            }
        }
    };
    Ok(frame::page(&site, "/", "Overview", cost, &main))
}

fn kept_ms(length: u64) -> u64 {
    verdict::KEPT_MS.max(length / KEPT_PART)
}

/// What commands did in this time; `None` if no flag says where their lines are.
async fn series(site: &Site, within: &'static str) -> anyhow::Result<Option<Arc<Series>>> {
    if !site.flags.commands.are_known() {
        return Ok(None);
    }
    let time = since(within).map_err(anyhow::Error::msg)?;
    let length = u64::try_from(time.as_millis())?;
    let mut kept = site.series.lock().await;
    if let Some(series) = kept.get(within).and_then(|look| look.within(kept_ms(length))) {
        return Ok(Some(series));
    }
    let now_ms = Clock::system().now_ms();
    let since_ms = now_ms.saturating_sub(length);
    let deployed = async {
        let Some(stack) = &site.stack else { return Ok(Vec::new()) };
        let found = deployments::since(&site.config, stack, &site.lists.stack, since_ms).await;
        found.map_err(|error| format!("{error:#}"))
    };
    let (lines, deployed) = futures::join!(site.flags.commands.all_since(since_ms), deployed);
    let slices = site.lists.stack.slices();
    let contexts = slices.map(|(context, slice)| (slice.name, context.name)).collect();
    let series = Arc::new(Series::of(&contexts, &lines?, deployed, (since_ms, now_ms)));
    kept.insert(within, LastLook::new(series.clone()));
    Ok(Some(series))
}

fn banner(verdict: &StackVerdict) -> Markup {
    let StackVerdict { at_ms, findings, unknown, .. } = verdict;
    let class = if verdict.is_well() { "banner well" } else { "banner wrong" };
    html! {
        section class=(class) aria-labelledby="verdict" {
            h2 #verdict {
                (verdict.sentence())
            }
            @if !findings.is_empty() { ul.findings { @for finding in findings { li { (of_finding(finding)) } } } }
            @for unknown in unknown { p.note { "Not known: " (unknown) "." } }
            p.note { "As of " (ago(*at_ms)) "." }
        }
    }
}

fn of_finding(fault: &StackFault) -> Markup {
    html! {
        div {
            p {
                strong { (fault.text) }
                @if let Some(at) = fault.since_ms { ", since " (ago(at)) }
                "."
                @if fault.what.needs_a_person() { " A person has to decide." }
            }
            @if let Some(cause) = fault.cause() { p.cause { (cause) } }
        }
        a.step href=(fault.url) { (fault.step) }
    }
}

/// The faults of the tiles for views, reactors and deadlines.
const VIEWS: &[What] = &[What::View, What::Parked];
const REACTORS: &[What] = &[What::Lane, What::Reactor];
const DEADLINES: &[What] = &[What::Deadline, What::DeadlinesBehind, What::DeadlinesParked];

/// A tile: its title, page and number, the faults that make it wrong, and what more there is to say.
struct Tile<'t> {
    title: &'static str,
    url: &'static str,
    number: Option<String>,
    of: &'static [What],
    note: String,
    curve: Option<&'t Parts>,
}

fn tiles(site: &Site, verdict: &StackVerdict, series: Option<&Series>) -> Markup {
    let counts = &verdict.counts;
    let of = |what: &'static [What]| {
        verdict.findings.iter().filter(move |finding| what.contains(&finding.what))
    };
    let sum = |what| of(what).map(|finding| finding.count).sum::<u64>();
    let commands = series.map(|series| {
        let [accepted, rejected, failed] = &series.outcomes;
        std::array::from_fn(|part| accepted[part] + rejected[part] + failed[part])
    });
    let total = series.map(|series| series.commands);
    // Lines have the history of these four. Of dead letters and the queue nothing is kept but what is in them now.
    let [views, deadlines] = [0, 1].map(|of: usize| series.map(|series| &series.late[of]));
    let lanes = series.map(|series| &series.lanes);
    let tile = |title, url, number, of, note: String| {
        let curve = match title {
            "Commands" => commands.as_ref(),
            "Views" => views,
            "Reactors" => lanes,
            "Deadlines due" => deadlines,
            _ => None,
        };
        Tile { title, url, number, of, note, curve }
    };
    let failing = of(&[What::Slice]).count();
    let behind: BTreeSet<_> = of(VIEWS).flat_map(|it| &it.names).collect();
    let standing: BTreeSet<_> = of(REACTORS).flat_map(|it| &it.names).collect();
    let of_all = |wrong: usize, all: Option<u64>| match wrong {
        0 => all.map(|all| all.to_string()),
        wrong => all.map(|all| format!("{wrong} of {all}")),
    };
    let parked = sum(&[What::Lane]);
    let waiting = counts.lanes_waiting.unwrap_or_default();
    let tiles = [
        tile(
            "Commands",
            "/commands",
            total.map(|total| total.to_string()),
            &[What::Slice],
            match failing {
                0 => "all slices are well".to_owned(),
                failing => format!("slices not well: {failing}"),
            },
        ),
        tile(
            "Views",
            "/views",
            of_all(behind.len(), counts.views),
            VIEWS,
            match behind.len() {
                0 => "all are current".to_owned(),
                _ => "not well".to_owned(),
            },
        ),
        tile(
            "Reactors",
            "/lanes",
            of_all(standing.len(), counts.reactors),
            REACTORS,
            match (parked, waiting) {
                (0, 0) if standing.is_empty() => "no lane waits".to_owned(),
                (0, 0) => "behind".to_owned(),
                (0, waiting) => format!("lanes tried again: {waiting}"),
                (parked, waiting) => format!("lanes parked: {parked}, tried again: {waiting}"),
            },
        ),
        tile(
            "Deadlines due",
            "/deadlines",
            counts.due.map(|due| due.to_string()),
            DEADLINES,
            of_deadlines(&verdict.findings),
        ),
        tile(
            "Dead letters",
            "/dead-letters",
            counts.dead_letters.map(|count| count.to_string()),
            &[What::DeadLetters],
            match site.flags.buckets.is_empty() {
                true => String::new(),
                false => "of a bucket ten at most".to_owned(),
            },
        ),
        tile(
            "Commands queued",
            "/commands",
            counts.queued.map(|count| count.to_string()),
            &[What::Queue],
            String::new(),
        ),
    ];
    html! {
        ul.tiles {
            @for Tile { title, url, number, of: what, note, curve } in &tiles {
                @let oldest = of(what).filter_map(|finding| finding.since_ms).min();
                @let is_wrong = of(what).next().is_some();
                li class=(if is_wrong { "tile wrong" } else { "tile" }) {
                    a href=(url) { (title) }
                    strong { @match number { Some(number) => (number), None => "?" } }
                    span.note { @if number.is_some() { (note) } @else { "not known" } }
                    @if let Some(at) = oldest { span.note { "the oldest " (ago(at)) } }
                    @if let Some(curve) = curve { (spark(curve)) }
                }
            }
        }
    }
}

/// What is wrong with deadlines.
fn of_deadlines(findings: &[StackFault]) -> String {
    let of = |what| findings.iter().filter(move |finding| finding.what == what);
    let mut notes = Vec::new();
    if of(What::Deadline).next().is_some() {
        notes.push("the first is late".to_owned());
    }
    for (what, word) in [(What::DeadlinesBehind, "behind"), (What::DeadlinesParked, "parked")] {
        match of(what).map(|finding| finding.names.len()).sum::<usize>() {
            0 => {}
            count => notes.push(format!("slices {word}: {count}")),
        }
    }
    if notes.is_empty() { "none is late".to_owned() } else { notes.join(", ") }
}

fn of_series(site: &Site, series: &Series) -> Markup {
    let Series { since_ms, until_ms, deployments, .. } = series;
    let deployed = deployments.as_deref().unwrap_or_default();
    let span = Span { since_ms: *since_ms, until_ms: *until_ms, deployments: deployed };
    let events: Vec<_> = series.events.iter().map(|(name, values)| (*name, values)).collect();
    let [accepted, rejected, failed] = &series.outcomes;
    let [half, most] = &series.durations;
    let [read, write] = &series.units;
    let [all_read, all_write] = [read, write].map(|parts| parts.iter().sum::<f64>());
    html! {
        @if series.commands == 0 {
            p.note { "No command in this time." }
            @if !deployed.is_empty() {
                ul.list { @for it in deployed { li { (ago(it.at_ms)) " " (it.line()) } } }
            }
        } @else {
            div.curves {
                (figure("Events by context", "events a minute", &events, None, &span))
                (figure(
                    "Outcomes", "commands",
                    &[("accepted", accepted), ("rejected", rejected), ("failed", failed)], Some("failed"), &span,
                ))
                (figure("Durations", "milliseconds", &[("p50", half), ("p99", most)], None, &span))
                (figure("Conflicts", "conflicts", &[("conflicts", &series.conflicts)], None, &span))
                (figure("Units", "units of DynamoDB", &[("read", read), ("write", write)], None, &span))
            }
        }
        @if let Err(why) = deployments { p.note { "The deployments are not known: " (why) "." } }
        p.note {
            @if series.commands > 0 {
                "These commands took " (number(all_read)) " read and " (number(all_write)) " write units, $"
                (format!("{:.6}", dollars_of_units(all_read, all_write))) " at " (PRICES_OF) ". "
            }
            "As of " (ago(series.until_ms)) ", read again after " (duration(kept_ms(series.until_ms - series.since_ms))) ". "
            @if let Some([first, last]) = series.cut {
                "There were more commands; those from " (rfc3339(first)) " to " (rfc3339(last)) " were read. "
            }
            "The numbers come from the functions' lines. On AWS, CloudWatch Logs gives at most 1 MB of them a request, \
             without a charge, and allows five requests a second in an account and Region."
        }
        h2 { "Last flows" }
        @if series.flows.is_empty() { p.note { "None in this time." } }
        @else {
            p.note { "A link looks for the flow in up to 10,000 events of the index, for half a read unit each." }
            ul.list { @for flow in &series.flows { li { (of_flow(site, flow)) } } }
        }
    }
}

fn of_flow(site: &Site, flow: &LastFlow) -> Markup {
    let LastFlow { correlation_id, slice, at_ms, commands, events, outcome } = flow;
    html! {
        (ago(*at_ms)) " " (link(site, slice)) " "
        // The index has only events.
        @if *events == 0 { (correlation_id) }
        @else { a href=(url("/search", [("q", &**correlation_id), ("further", "true")])) { (correlation_id) } }
        span.note {
            " commands: " (commands) ", events: " (events)
            @if let Some(outcome) = outcome { ", " (outcome) }
        }
    }
}
