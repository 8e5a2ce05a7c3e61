//! The map: which commands write which events, who reacts, and which views show them. First come the contexts, then one
//! context, then one slice with its neighbours. The picture has the traffic of the last hour, and what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use futures::join;
use maud::{Markup, html};
use ringfence_aws::Clock;
use ringfence_cli::verdict::{StackVerdict, What};
use ringfence_core::visible;
use ringfence_template::map::{EdgeKind, Map, Node, NodeKind, Note, Svg};
use tokio::time::timeout;

use crate::frame::{self, Cost, Path, Problem, slice_url};
use crate::node::{self, node_url};
use crate::replay::Replay;
use crate::site::Site;
use crate::verdict;

/// A page waits this long for the lines of commands and the verdict.
const LINES_TIME: Duration = Duration::from_secs(3);
const LATE: &str = "No answer came in three seconds, so traffic and what is wrong are not known.";
const HOUR_MS: u64 = 3_600_000;
/// A larger stack is shown by context first.
const SLICES_MAX: usize = 60;

type Parameters = Vec<(String, String)>;

/// The page of the whole stack. With an event it replays the flow of that event.
pub(crate) async fn whole(
    State(site): State<Arc<Site>>,
    Query(parameters): Query<Parameters>,
) -> Result<Markup, Problem> {
    let map = Map::of(&site.lists.stack);
    if let Some(replay) = Replay::of(&site, &parameters).await? {
        let shown = map.of_ids(&replay.ids(&map)).without_reads();
        let traffic = Traffic { notes: replay.notes(), ..Traffic::default() };
        let main = html! {
            (replay.controls())
            (traffic.picture(&shown, "The parts of the stack through which the flow went", &node_url))
            (replay.steps())
        };
        return Ok(frame::page(&site, "/map", "Replay of a flow", replay.cost(), &main));
    }
    let (traffic, cost) = Traffic::of(&site, &map).await;
    let slices = site.lists.stack.slices().count();
    let main = html! {
        p { "Read from left to right: a command leads to events, and an event to views and to reactions." }
        (traffic.said())
        h2 { "Contexts" }
        (traffic.picture(&map.of_contexts(), "The contexts of the stack, and what leads from one to another", &node_url))
        (crossing(&map))
        @if slices <= SLICES_MAX {
            h2 { "The whole stack" }
            (traffic.picture(&map.without_reads(), "The map of the stack", &node_url))
            (traffic.table(&map, None))
        }
    };
    Ok(frame::page(&site, "/map", "Map", cost, &main))
}

/// The page of a context.
pub(crate) async fn context(
    State(site): State<Arc<Site>>,
    Path(context): Path<String>,
) -> Result<Markup, Problem> {
    let map = Map::of(&site.lists.stack);
    let nothing = || Problem::nothing(format!("The stack has no context {context}."));
    let shown = map.of_context(&context).ok_or_else(nothing)?;
    let (traffic, cost) = Traffic::of(&site, &map).await;
    let main = html! {
        nav.pages aria-label="Maps" { a href="/map" { "The whole stack" } }
        (traffic.said())
        (traffic.picture(&shown, &format!("The map of the context {context}"), &node_url))
        (traffic.table(&map, Some(&context)))
    };
    Ok(frame::page(&site, "/map", &format!("Map of {context}"), cost, &main))
}

/// The page of a slice with its neighbours.
pub(crate) async fn slice(
    State(site): State<Arc<Site>>,
    Path((context, slice)): Path<(String, String)>,
) -> Result<Markup, Problem> {
    let map = Map::of(&site.lists.stack);
    let id = format!("{context}/{slice}");
    let nothing = || Problem::nothing(format!("No context has the slice {id}."));
    let shown = map.of_slice(&id).ok_or_else(nothing)?;
    let (mut traffic, cost) = Traffic::of(&site, &map).await;
    traffic.notes.entry(id.clone()).or_default().is_now = true;
    let url = |node: &Node| if node.id == id { slice_url(&id) } else { node_url(node) };
    let main = html! {
        nav.pages aria-label="Maps" {
            a href="/map" { "The whole stack" }
            a href={ "/map/" (context) } { "The context " (context) }
            a href=(slice_url(&id)) { "The slice" }
        }
        (traffic.said())
        (traffic.picture(&shown, &format!("The slice {id} and its neighbours"), &url))
        (traffic.table(&shown, None))
    };
    Ok(frame::page(&site, "/map", &format!("Map of {id}"), cost, &main))
}

/// What happened in the last hour, and what is wrong.
#[derive(Default)]
pub(crate) struct Traffic {
    pub(crate) notes: BTreeMap<String, Note>,
    /// Events of the last hour, by the ids of an edge's ends.
    rates: BTreeMap<(String, String), u64>,
    /// What is not known.
    unknown: Option<String>,
}

impl Traffic {
    async fn of(site: &Site, map: &Map) -> (Self, Cost) {
        let since = Clock::system().now_ms().saturating_sub(HOUR_MS);
        let mut traffic = Self::default();
        // Both read the log.
        let looks = async { join!(site.flags.commands.since(since), verdict::find(site)) };
        let Ok((lines, (verdict, has_looked))) = timeout(LINES_TIME, looks).await else {
            traffic.unknown = Some(LATE.to_owned());
            return (traffic, Cost::default());
        };
        match lines {
            _ if !site.flags.commands.are_known() => {
                traffic.unknown =
                    Some("No flag names the log, so the traffic is not known.".to_owned());
            }
            Err(error) => traffic.unknown = Some(format!("{error:#}.")),
            Ok(lines) => {
                let (mut commands, mut events) = (BTreeMap::<_, u64>::new(), BTreeMap::new());
                for line in &lines {
                    *commands.entry(&*line.slice).or_default() += 1;
                    for (name, count) in &line.events {
                        *events.entry((&*line.slice, &**name)).or_default() += count;
                    }
                }
                for ((slice, name), count) in events {
                    traffic.event(map, slice, name, count);
                }
                for (slice, all) in commands {
                    for node in
                        map.nodes.iter().filter(|node| node.is_slice() && node.name == slice)
                    {
                        let note = traffic.notes.entry(node.id.clone()).or_default();
                        note.text = format!("{all} an hour");
                    }
                }
            }
        }
        traffic.findings(map, &verdict);
        let cost = if has_looked {
            Cost::of_reads(verdict.requests, verdict.read_units)
        } else {
            Cost::default()
        };
        (traffic, cost)
    }

    /// Counts events that a slice has written.
    fn event(&mut self, map: &Map, slice: &str, name: &str, count: u64) {
        let written = map.edges.iter().find(|edge| {
            let ends = || map.get(&edge.from).zip(map.get(&edge.to));
            edge.does == EdgeKind::Writes
                && ends().is_some_and(|(from, to)| from.name == slice && to.name == name)
        });
        let Some(written) = written else { return };
        let after = map.edges.iter().filter(|edge| edge.from == written.to);
        for edge in after.filter(|edge| edge.does != EdgeKind::Reads).chain([written]) {
            *self.rates.entry((edge.from.clone(), edge.to.clone())).or_default() += count;
        }
        let own = map.get(&written.to).map_or("", |event| &event.context);
        let contexts = map.after(&written.to).into_iter().map(|node| &node.context);
        for context in contexts.filter(|context| *context != own).collect::<BTreeSet<_>>() {
            *self.rates.entry((own.to_owned(), context.clone())).or_default() += count;
        }
    }

    /// Marks what is wrong.
    fn findings(&mut self, map: &Map, verdict: &StackVerdict) {
        for finding in &verdict.findings {
            let is_it = |node: &&Node| {
                finding.names.contains(&node.name)
                    && match finding.what {
                        What::View | What::Parked => node.kind == NodeKind::View,
                        What::Reactor | What::Lane => node.is_reactor() || node.is_slice(),
                        What::Deadline | What::DeadlinesBehind | What::DeadlinesParked => {
                            node.is_slice()
                        }
                        What::Slice | What::Conflicts => node.is_slice(),
                        What::DeadLetters | What::Function => node.kind != NodeKind::Event,
                        What::Queue | What::Source => false,
                    }
            };
            for node in map.nodes.iter().filter(is_it) {
                let word = match finding.what {
                    What::View | What::DeadlinesBehind | What::Reactor => "behind",
                    What::Lane | What::Parked | What::DeadlinesParked => "parked",
                    What::Deadline => "late",
                    What::DeadLetters => "dead letters",
                    What::Conflicts => "conflicts",
                    What::Slice | What::Function | What::Queue | What::Source => "failing",
                };
                let wrong = Note { text: word.to_owned(), is_wrong: true, ..Note::default() };
                self.notes.insert(
                    node.context.clone(),
                    Note { text: "not well".to_owned(), ..wrong.clone() },
                );
                self.notes.insert(node.id.clone(), wrong);
            }
        }
    }

    fn said(&self) -> Markup {
        html! {
            @match &self.unknown {
                Some(unknown) => { p.note { (visible(unknown)) } }
                None => { p.note { "Lines are as wide as the events of the last hour are many. Red is not well." } }
            }
        }
    }

    pub(crate) fn picture(&self, map: &Map, title: &str, url: &dyn Fn(&Node) -> String) -> Markup {
        let lane_url = |context: &str| Some(format!("/map/{context}"));
        let (notes, rates) = (&self.notes, &self.rates);
        let url = &|node: &Node| Some(url(node));
        html! {
            div.wide.sheet tabindex="0" role="region" aria-label=(title) {
                (Svg { map, title, url, lane_url: &lane_url, notes, rates }.markup())
            }
            // The script writes here what the decision under the pointer or the focus reads.
            p.boundary.note aria-live="polite" {}
        }
    }

    /// The same as a table: each slice with what leads to it, what it reads and writes, and what its events lead to.
    /// `context` limits it to the slices of one context.
    fn table(&self, map: &Map, context: Option<&str>) -> Markup {
        let is_shown = |node: &&Node| context.is_none_or(|context| node.context == context);
        let slices = map.nodes.iter().filter(|node| node.is_slice()).filter(is_shown);
        html! {
            h2 { "As a table" }
            div.wide tabindex="0" role="region" aria-label="The map as a table" {
                table.figures {
                    thead { tr {
                        th scope="col" { "Slice" } th scope="col" { "Kind" } th scope="col" { "Last hour" }
                        th scope="col" { "After" } th scope="col" { "Its decision reads" } th scope="col" { "Writes" }
                        th scope="col" { "Which lead to" }
                    } }
                    tbody {
                        @for slice in slices { (self.row(map, slice)) }
                    }
                }
            }
        }
    }

    fn row(&self, map: &Map, slice: &Node) -> Markup {
        let note = self.notes.get(&slice.id);
        let writes = map.after(&slice.id);
        html! {
            tr {
                th scope="row" { (link(slice)) }
                td { (slice.words()) }
                td.bad[note.is_some_and(|note| note.is_wrong)] { (note.map_or("", |note| &note.text)) }
                td { div.chips { @for event in map.before(&slice.id) { (link(event)) } } }
                td {
                    @for boundary in &slice.reads {
                        div { (boundary.shape) " " span.note { (boundary.names()) } }
                    }
                }
                td {
                    div.chips {
                        @for event in writes { (link(event)) @if event.personal { span.note { "personal data" } } }
                    }
                }
                td { div.chips { @for node in map.followers(&slice.id) { (link(node)) } } }
            }
        }
    }
}

/// What leads from one context to another, as a table.
fn crossing(map: &Map) -> Markup {
    let mut rows = BTreeMap::<_, Vec<_>>::new();
    for (from, to, edge) in map.crossing() {
        if let Some(ends) = map.get(&edge.from).zip(map.get(&edge.to)) {
            rows.entry((from, to)).or_default().push((edge.does, ends));
        }
    }
    html! {
        @if !rows.is_empty() {
            div.wide tabindex="0" role="region" aria-label="What leads from one context to another" {
                table.figures {
                    thead { tr { th scope="col" { "From" } th scope="col" { "To" } th scope="col" { "What" } } }
                    tbody {
                        @for ((from, to), edges) in &rows {
                            tr {
                                th scope="row" { a href={ "/map/" (from) } { (from) } }
                                td { a href={ "/map/" (to) } { (to) } }
                                td {
                                    @for (does, (event, node)) in edges {
                                        div { (link(event)) " " (does.words()) " " (link(node)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A link to a node on the map.
fn link(node: &Node) -> Markup {
    node::link(node, &node_url(node))
}

#[cfg(test)]
mod tests {
    use ringfence_cli::verdict::StackFault;
    use ringfence_template::map::Edge;

    use super::*;

    /// A slice writes an event, which a view of another context shows.
    fn map() -> Map {
        let node = |context: &str, kind: NodeKind, name: &str| Node {
            id: format!("{context}/{name}"),
            kind,
            what: kind.class().to_owned(),
            context: context.to_owned(),
            name: name.to_owned(),
            about: String::new(),
            reads: Vec::new(),
            personal: false,
        };
        let edge = |from: &str, to: &str, does| Edge { from: from.into(), to: to.into(), does };
        Map {
            contexts: ["a", "b"].map(str::to_owned).into(),
            nodes: vec![
                node("a", NodeKind::Command, "lend"),
                node("a", NodeKind::Event, "Lent"),
                node("b", NodeKind::View, "loans"),
            ],
            edges: vec![
                edge("a/lend", "a/Lent", EdgeKind::Writes),
                edge("a/Lent", "a/lend", EdgeKind::Reads),
                edge("a/Lent", "b/loans", EdgeKind::Shows),
            ],
        }
    }

    #[test]
    fn events_count_on_each_of_their_lines_and_faults_at_their_node_and_context() {
        let (mut traffic, map) = (Traffic::default(), map());
        traffic.event(&map, "lend", "Lent", 2);
        traffic.event(&map, "lend", "Lost", 9);
        traffic.event(&map, "lend", "Lent", 1);
        let lines = traffic.rates.iter().map(|((from, to), count)| (&**from, &**to, *count));
        let expected = [("a", "b", 3), ("a/Lent", "b/loans", 3), ("a/lend", "a/Lent", 3)];
        assert!(lines.eq(expected), "{:?}", traffic.rates);
        for (what, name, at) in [
            (What::View, "loans", &["b", "b/loans"][..]),
            (What::Slice, "lend", &["a", "a/lend"]),
            (What::DeadLetters, "lend", &["a", "a/lend"]),
            (What::Lane, "lend", &["a", "a/lend"]),
            (What::DeadlinesBehind, "lend", &["a", "a/lend"]),
            (What::View, "lend", &[]),
            (What::Slice, "loans", &[]),
            (What::DeadLetters, "Lent", &[]),
            (What::Source, "lend", &[]),
        ] {
            let fault = StackFault {
                what,
                names: vec![name.to_owned()],
                count: 1,
                since_ms: None,
                text: String::new(),
                cause: None,
                url: String::new(),
                step: "",
            };
            let verdict = StackVerdict { findings: vec![fault], ..StackVerdict::default() };
            let mut traffic = Traffic::default();
            traffic.findings(&map, &verdict);
            let wrong = traffic.notes.iter().filter(|(_, note)| note.is_wrong);
            assert!(wrong.map(|(id, _)| id).eq(at), "{what:?} {name}: {:?}", traffic.notes);
        }
    }
}
