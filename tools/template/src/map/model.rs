//! The map in plain values.

use ringfence_core::{LogKind, Name, Subjects};
use ringfence_stack::{ContextInfo, SliceInfo, Stack};
use ringfence_views::Definition;
use serde::Serialize;

/// The kind of a reactor, in words.
const REACTOR: &str = "reactor";

/// The commands, events, views and reactions of a stack, and what leads to what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Map {
    /// The names of the contexts, in the order of the list.
    pub contexts: Vec<String>,
    /// Its nodes, by context.
    pub nodes: Vec<Node>,
    /// Its edges.
    pub edges: Vec<Edge>,
}

/// A part of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// `<context>/<name>`. A type of events never has the name of a slice, because names of types are in Pascal case.
    /// A view and a reactor can have the name of a slice, so theirs begin with `view:` and `reactor:`.
    pub id: String,
    /// Its kind, which gives the colour.
    pub kind: NodeKind,
    /// Its kind in words, such as `command, automation`.
    pub what: String,
    /// Its context.
    pub context: String,
    /// Its name.
    pub name: String,
    /// Its description, if it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The boundaries that the decision of a slice reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<MapBoundary>,
    /// Whether it has personal data, or reads or writes some.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub personal: bool,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// A slice to which callers give commands.
    Command,
    /// A type of events.
    Event,
    /// A view.
    View,
    /// A slice that only reacts or whose commands become due, or a reactor.
    Reaction,
    /// A context, on the map of contexts.
    Context,
}

/// A kind of boundaries that a decision reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MapBoundary {
    /// Its shape, such as `orderId:…`.
    pub shape: String,
    /// The ids of the types of events that the decision reads there. Two contexts can have types of one name.
    pub events: Vec<String>,
}

impl MapBoundary {
    /// The names of these types, for people.
    #[must_use]
    pub fn names(&self) -> String {
        let names = self.events.iter().map(|id| id.rsplit('/').next().unwrap_or_default());
        names.collect::<Vec<_>>().join(", ")
    }
}

/// It leads from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The id of the first node.
    pub from: String,
    /// The id of the second node.
    pub to: String,
    /// What leads from one to the other.
    pub does: EdgeKind,
}

/// What an edge means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// The slice writes the event.
    Writes,
    /// The slice or the reactor reacts to the event.
    Reacts,
    /// The view shows the event.
    Shows,
    /// The event sets, moves or clears the deadline of the slice.
    Sets,
    /// The decision of the slice reads the event.
    Reads,
}

impl EdgeKind {
    /// The edge in words, between the names of its nodes.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Writes => "is written as",
            Self::Reacts => "leads to",
            Self::Shows => "is shown by",
            Self::Sets => "sets or clears the deadline of",
            Self::Reads => "is read by",
        }
    }
}

impl Node {
    /// Its kind in words, and whether it has personal data.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{}{}", self.what, if self.personal { ", personal data" } else { "" })
    }

    /// Whether it is a slice.
    #[must_use]
    pub fn is_slice(&self) -> bool {
        matches!(self.kind, NodeKind::Command | NodeKind::Reaction) && !self.is_reactor()
    }

    /// Whether it is a slice to which callers give commands and that also reacts.
    #[must_use]
    pub fn also_reacts(&self) -> bool {
        self.kind == NodeKind::Command && self.what.contains(", ")
    }

    /// Whether it is a reactor.
    #[must_use]
    pub fn is_reactor(&self) -> bool {
        self.what == REACTOR
    }
}

impl NodeKind {
    /// The kind of a slice: a reaction, unless callers give its commands.
    #[must_use]
    pub fn of_slice(context: &ContextInfo, slice: &SliceInfo) -> Self {
        let has_deadline = || context.dues.iter().any(|due| due.name == slice.name);
        // If nothing in the stack gives them, a caller without a route does.
        let is_reaction = slice.scopes.is_none() && (!slice.reacts_to.is_empty() || has_deadline());
        if is_reaction { Self::Reaction } else { Self::Command }
    }

    /// Its class in a style.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Event => "event",
            Self::View => "view",
            Self::Reaction => "reaction",
            Self::Context => "context",
        }
    }
}

impl Map {
    /// The map of the whole stack.
    #[must_use]
    pub fn of(stack: &Stack) -> Self {
        let contexts = stack.contexts.iter().map(|context| context.name.to_owned()).collect();
        let mut map = Self { contexts, ..Self::default() };
        for context in &stack.contexts {
            for slice in &context.slices {
                map.slice(stack, context, slice);
            }
            for name in own_types(stack, context) {
                map.event(stack, context.name, name);
            }
            for view in &context.views {
                map.view(stack, context, view);
            }
            for reactor in &context.reactors {
                let id = format!("{}/reactor:{}", context.name, reactor.name);
                for name in reactor.reads {
                    // Of the logs with streams, it reads its own context's alone.
                    let is_read = |of: &&ContextInfo| {
                        (of.log == LogKind::Dcb || of.name == context.name)
                            && declares(stack, of, name)
                    };
                    let owners = stack.contexts.iter().filter(is_read);
                    owners.for_each(|of| map.edge(event_id(of.name, name), &id, EdgeKind::Reacts));
                }
                let node = map.node(id, NodeKind::Reaction, REACTOR, context.name, reactor.name);
                node.personal = reactor.is_personal;
            }
        }
        let place = |name: &str| map.contexts.iter().position(|context| context == name);
        let mut nodes = std::mem::take(&mut map.nodes);
        nodes.sort_by_key(|node| place(&node.context));
        Self { nodes, ..map }
    }

    /// The node of this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The nodes that lead to this one.
    #[must_use]
    pub fn before(&self, id: &str) -> Vec<&Node> {
        let edges = self.edges.iter().filter(|edge| edge.to == id && edge.does != EdgeKind::Reads);
        edges.filter_map(|edge| self.get(&edge.from)).collect()
    }

    /// The nodes that this one leads to.
    #[must_use]
    pub fn after(&self, id: &str) -> Vec<&Node> {
        let edges =
            self.edges.iter().filter(|edge| edge.from == id && edge.does != EdgeKind::Reads);
        edges.filter_map(|edge| self.get(&edge.to)).collect()
    }

    /// The nodes to which the events of a slice lead.
    #[must_use]
    pub fn followers(&self, slice: &str) -> Vec<&Node> {
        let written = self.after(slice).into_iter();
        let mut found: Vec<_> = written.flat_map(|event| self.after(&event.id)).collect();
        found.sort_by_key(|node| &node.id);
        found.dedup();
        found
    }

    fn slice(&mut self, stack: &Stack, context: &ContextInfo, slice: &SliceInfo) {
        let id = format!("{}/{}", context.name, slice.name);
        for name in &slice.writes {
            self.edge(id.clone(), &event_id(context.name, name), EdgeKind::Writes);
        }
        for cause in slice.reacts_to {
            self.edge(event_id(cause.context, cause.event_type), &id, EdgeKind::Reacts);
        }
        let due = context.dues.iter().find(|due| due.name == slice.name);
        if let Some(due) = due {
            self.folds(stack, due, &id, EdgeKind::Sets);
        }
        let read = |name: &Name| {
            // A decision on a stream reads its own stream alone.
            let own = Some(context.name).filter(|_| declares(stack, context, name));
            let owner = own.or_else(|| stack.catalog.context(name));
            owner.map(|owner| event_id(owner, name))
        };
        let reads = (slice.depends_on)().into_iter().map(|(shape, dependence)| MapBoundary {
            shape: shape.to_string(),
            events: dependence.types.iter().filter_map(read).collect(),
        });
        let reads: Vec<_> = reads.collect();
        for event in slice.reads.iter().filter_map(read) {
            self.edge(event, &id, EdgeKind::Reads);
        }
        let words = [
            ("command", slice.scopes.is_some()),
            ("automation", !slice.reacts_to.is_empty()),
            ("deadline", due.is_some()),
        ];
        let words: Vec<_> = words.iter().filter(|(_, is)| *is).map(|(word, _)| *word).collect();
        let what = if words.is_empty() { "command".to_owned() } else { words.join(", ") };
        let kind = NodeKind::of_slice(context, slice);
        let node = self.node(id, kind, &what, context.name, slice.name);
        node.about = slice.about.to_owned();
        (node.reads, node.personal) = (reads, slice.is_personal);
        for name in &slice.writes {
            self.event(stack, context.name, name);
        }
        for cause in slice.reacts_to {
            self.event(stack, cause.context, cause.event_type);
        }
    }

    fn view(&mut self, stack: &Stack, context: &ContextInfo, view: &Definition) {
        let id = format!("{}/view:{}", context.name, view.name);
        self.folds(stack, view, &id, EdgeKind::Shows);
        let node = self.node(id, NodeKind::View, "view", context.name, view.name);
        node.personal = view.is_personal();
    }

    /// Adds an edge from each type of events that a view or a due reads.
    fn folds(&mut self, stack: &Stack, definition: &Definition, id: &str, does: EdgeKind) {
        for name in definition.types {
            for of in read_by(stack, definition, name) {
                self.edge(event_id(of, name), id, does);
            }
        }
    }

    /// Adds a type of events, unless it is there. An event of another stack brings its context.
    fn event(&mut self, stack: &Stack, context: &str, name: &str) {
        let id = event_id(context, name);
        if self.get(&id).is_none() {
            let mut declared =
                stack.catalogs.0.iter().filter(|it| it.context(name) == Some(context));
            let schema = declared.find_map(|catalog| catalog.schema(name));
            let node = self.node(id, NodeKind::Event, "event", context, name);
            node.personal = schema.is_some_and(|schema| schema.subjects != Subjects::NONE);
        }
    }

    fn node(
        &mut self,
        id: String,
        kind: NodeKind,
        what: &str,
        context: &str,
        name: &str,
    ) -> &mut Node {
        if !self.contexts.iter().any(|known| known == context) {
            self.contexts.push(context.to_owned());
        }
        let [what, context, name] = [what, context, name].map(str::to_owned);
        let (about, reads) = (String::new(), Vec::new());
        self.nodes.push_mut(Node { id, kind, what, context, name, about, reads, personal: false })
    }

    /// Adds an edge. Between two nodes there is one, and one more if a decision reads: a slice that reacts to an event
    /// may have a deadline that the event clears, and then the reaction says more.
    fn edge(&mut self, from: String, to: &str, does: EdgeKind) {
        let reads = |does| does == EdgeKind::Reads;
        let is_there = |it: &Edge| it.from == from && it.to == to && reads(it.does) == reads(does);
        if !self.edges.iter().any(is_there) {
            self.edges.push(Edge { from, to: to.to_owned(), does });
        }
    }
}

fn event_id(context: &str, name: &str) -> String {
    format!("{context}/{name}")
}

/// The types of events that a context declares, without snapshots.
fn own_types<'a>(stack: &'a Stack, context: &'a ContextInfo) -> impl Iterator<Item = &'a Name> {
    let is_event = |name: &&Name| {
        let mut catalogs = stack.catalogs.0.iter();
        catalogs.any(|catalog| catalog.context(name) == Some(context.name))
    };
    context.event_types.iter().filter(is_event)
}

fn declares(stack: &Stack, context: &ContextInfo, name: &str) -> bool {
    own_types(stack, context).any(|own| own == name)
}

/// The contexts whose events of this type a view or a due reads.
fn read_by<'a>(stack: &'a Stack, definition: &Definition, name: &str) -> Vec<&'a str> {
    let is_read = |of: &&ContextInfo| {
        let is_dcb = of.log == LogKind::Dcb;
        (is_dcb || definition.streams.contains(&of.name)) && declares(stack, of, name)
    };
    stack.contexts.iter().filter(is_read).map(|of| of.name).collect()
}
