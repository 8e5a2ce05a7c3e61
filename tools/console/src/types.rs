//! The types of events: the page of all, and a page for each with its fields and with everything that uses it.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use ringfence_cli::readable;
use ringfence_cli::shown::cut;
use ringfence_core::{EventSchema, TagSchema};
use ringfence_feed::{FeedError, Index, KnownEntry};
use ringfence_schemas::Lock;
use ringfence_stack::{ContextInfo, Stack};
use ringfence_template::map::{EdgeKind, Map, Node};

use crate::events::{context, event_url, one_line};
use crate::frame::{self, Kind, Path, Problem, ago, chip, encoded, url};
use crate::node::page_link;
use crate::site::Site;
use crate::versions::Versions;

/// The newest events of a type are looked for among so many events of the index.
const LOOKED_MAX: usize = 1_000;
/// The most events of a type on its page.
const EVENTS_MAX: usize = 10;
/// The most blocks of their bodies, each half a read unit.
const BLOCKS_MAX: u64 = 12;
/// The most characters of an example.
const EXAMPLE_CHARS_MAX: usize = 80;

/// The page of a type.
pub(crate) fn type_url(event_type: &str) -> String {
    format!("/types/{}", encoded(event_type))
}

/// A type of events on the map of its stack.
struct OnMap<'a> {
    map: &'a Map,
    id: String,
}

impl<'a> OnMap<'a> {
    fn of(map: &'a Map, context: &str, name: &str) -> Self {
        Self { map, id: format!("{context}/{name}") }
    }

    /// The nodes at the other ends of the type's edges of these kinds, as chips.
    fn ends(&self, does: &[EdgeKind]) -> Vec<Markup> {
        let edges = self.map.edges.iter().filter(|edge| does.contains(&edge.does));
        let ends = edges.filter_map(|edge| match &self.id {
            id if edge.from == *id => Some(&edge.to),
            id if edge.to == *id => Some(&edge.from),
            _ => None,
        });
        ends.filter_map(|id| self.map.get(id)).map(page_link).collect()
    }

    /// The decisions that read it, each with the boundaries in which it does.
    fn deciders(&self) -> Vec<Markup> {
        let edges = self.map.edges.iter();
        let edges = edges.filter(|edge| edge.does == EdgeKind::Reads && edge.from == self.id);
        let decider = |node: &Node| {
            let reads = node.reads.iter().filter(|it| it.events.contains(&self.id));
            let shapes: Vec<_> = reads.map(|it| &*it.shape).collect();
            html! { span { (page_link(node)) " by " code { (shapes.join(", ")) } } }
        };
        edges.filter_map(|edge| self.map.get(&edge.to)).map(decider).collect()
    }
}

fn chips(chips: &[Markup], none: &str) -> Markup {
    html! {
        @if chips.is_empty() { span.note { (none) } }
        @else { div.chips { @for chip in chips { (chip) } } }
    }
}

/// The type of a context as its catalog has it.
fn schema<'a>(stack: &'a Stack, context: &str, name: &str) -> Option<&'a EventSchema> {
    let catalogs = stack.catalogs.0.iter();
    catalogs.filter(|it| it.context(name) == Some(context)).find_map(|it| it.schema(name))
}

fn tags(schema: &EventSchema, is_partition: bool) -> String {
    let tags = schema.tags.iter().filter(|tag| tag.partition == is_partition);
    let key = |tag: &TagSchema| format!("{}{}", tag.key, if tag.blind { " (blind)" } else { "" });
    tags.map(key).collect::<Vec<_>>().join(", ")
}

/// The page of all types.
pub(crate) async fn all(State(site): State<Arc<Site>>) -> Markup {
    const READS: [EdgeKind; 4] =
        [EdgeKind::Reads, EdgeKind::Reacts, EdgeKind::Sets, EdgeKind::Shows];
    let stack = &site.lists.stack;
    let map = Map::of(stack);
    let main = html! {
        @for of in &stack.contexts {
            h2 { (context(stack, of.name)) }
            div.wide tabindex="0" role="region" aria-label={ "Types of " (of.name) } {
                table.figures.types {
                    thead {
                        tr {
                            @for column in ["Type", "Version", "Partition", "Other tags", "Written by", "Read by"] {
                                th scope="col" { (column) }
                            }
                        }
                    }
                    tbody {
                        @for name in &of.event_types {
                            @let uses = OnMap::of(&map, of.name, name);
                            @if let Some(schema) = schema(stack, of.name, name) {
                                tr {
                                    th scope="row" { (chip(Kind::Event, name, &type_url(name))) }
                                    td.number { (schema.upcasts.version()) }
                                    td { (tags(schema, true)) }
                                    td { (tags(schema, false)) }
                                    td { (chips(&uses.ends(&[EdgeKind::Writes]), "no slice")) }
                                    td { (chips(&uses.ends(&READS), "nothing")) }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    frame::page(&site, "/types", "Types", None, &main)
}

/// The page of the types of one name. Contexts on logs of streams may have types of the same name.
pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
) -> Result<Markup, Problem> {
    let stack = &site.lists.stack;
    let of = stack.contexts.iter().filter(|it| it.event_types.iter().any(|it| *it == name));
    let of: Vec<_> = of.filter_map(|it| Some((it, schema(stack, it.name, &name)?))).collect();
    if of.is_empty() {
        let nothing = Problem::nothing(format!("No context declares the type {name}."));
        return Err(nothing.further("/types".to_owned(), "All types"));
    }
    let (locks, map, index) = ((site.lists.locks)(), Map::of(stack), site.index());
    let newest = newest(&index, &name).await?;
    let main = html! {
        @for (of, schema) in &of {
            @let now = locks.get(of.name).and_then(|lock| lock.events.get(&name));
            @let versions = Versions { now, released: Lock::read(&site.root(), of.name) };
            (one(stack, of, &OnMap::of(&map, of.name, &name), schema, &versions))
        }
        h2 { "Newest events" }
        ul.found {
            @for (entry, _) in &newest.events {
                li {
                    a.chip.event href=(event_url(entry.checkpoint)) { (entry.event.id()) } " " (ago(entry.event.at)) " "
                    code { (cut(&one_line(&entry.event.data), EXAMPLE_CHARS_MAX)) }
                }
            }
        }
        p.note {
            @if newest.events.is_empty() { "None. " }
            "Of the index, the newest " (newest.looked_at) " events were looked at. "
            a href=(url("/events", [("type", &*name)])) { "Look further" }
        }
    };
    Ok(frame::page(&site, "/types", &name, Some(index.usage()), &main))
}

struct Newest {
    events: Vec<KnownEntry>,
    looked_at: usize,
}

/// The newest events of a type. Only their bodies are read.
async fn newest(index: &Index, name: &str) -> Result<Newest, FeedError> {
    let references = index.references(index.end().await?, LOOKED_MAX, false).await?;
    let looked_at = references.len();
    let mut blocks = 0;
    let of_type = references.into_iter().filter(|(_, it)| it.event_type == name);
    let wanted = of_type.take(EVENTS_MAX).take_while(|(_, it)| {
        blocks += it.blocks();
        blocks <= BLOCKS_MAX
    });
    let events = index.events(wanted.collect()).await?;
    let events = events.into_iter().map(|(entry, why)| (readable((entry, why.clone())), why));
    Ok(Newest { events: events.collect(), looked_at })
}

fn one(
    stack: &Stack,
    of: &ContextInfo,
    uses: &OnMap<'_>,
    schema: &EventSchema,
    versions: &Versions<'_>,
) -> Markup {
    let newest = schema.upcasts.version();
    let written = schema.write.as_ref().map_or(newest, |write| write.number);
    html! {
        dl {
            dt { "Context" } dd { (context(stack, of.name)) }
            dt { "Partition" }
            dd { @match &*tags(schema, true) { "" => "events without tags share one", keys => { code { (keys) } } } }
            dt { "Other tags" }
            dd { @match &*tags(schema, false) { "" => "none", keys => { code { (keys) } } } }
            dt { "Version" }
            dd {
                (newest)
                @if newest > 1 { ". Events of older versions are upcast one after another" }
                @if written < newest { ". New events are still stored as version " (written) }
                @if schema.retired { ". No slice writes it any more" }
            }
            dt { "Written by" } dd { (chips(&uses.ends(&[EdgeKind::Writes]), "no slice")) }
            dt { "Decisions that read it" } dd { (chips(&uses.deciders(), "none")) }
            dt { "Reactions" } dd { (chips(&uses.ends(&[EdgeKind::Reacts, EdgeKind::Sets]), "none")) }
            dt { "Shown in" } dd { (chips(&uses.ends(&[EdgeKind::Shows]), "no view")) }
            dt { "On the map" } dd { a href={ "/map/" (encoded(of.name)) } { (of.name) } }
        }
        (versions.markup(schema))
    }
}
