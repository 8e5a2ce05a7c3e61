//! Smaller maps: of the contexts, of one context, and of one slice.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Edge, EdgeKind, Map, Node, NodeKind};

impl Map {
    /// The contexts, each with the number of its parts, and what leads from one to another.
    #[must_use]
    pub fn of_contexts(&self) -> Self {
        let node = |context: &String| {
            let of = |kind| {
                let is_it = |node: &&Node| node.context == *context && node.kind == kind;
                self.nodes.iter().filter(is_it).count()
            };
            let own = self.nodes.iter().filter(|node| node.context == *context);
            let slices = own.filter(|node| node.is_slice()).count();
            let counts =
                [(slices, "slice"), (of(NodeKind::Event), "event"), (of(NodeKind::View), "view")];
            let counts = counts.into_iter().filter(|(count, _)| *count > 0);
            let counted = counts.map(|(count, what)| match count {
                1 => format!("1 {what}"),
                _ => format!("{count} {what}s"),
            });
            Node {
                id: context.clone(),
                kind: NodeKind::Context,
                what: counted.collect::<Vec<_>>().join(", "),
                context: String::new(),
                name: context.clone(),
                about: String::new(),
                reads: Vec::new(),
                personal: self.nodes.iter().any(|node| node.context == *context && node.personal),
            }
        };
        let mut edges = BTreeMap::new();
        for (from, to, edge) in self.crossing() {
            let does = edges.entry((from, to)).or_insert(edge.does);
            *does = edge.does.min(*does);
        }
        let edge = |((from, to), does): ((&str, &str), EdgeKind)| {
            let [from, to] = [from, to].map(str::to_owned);
            Edge { from, to, does }
        };
        Self {
            contexts: vec![String::new()],
            nodes: self.contexts.iter().map(node).collect(),
            edges: edges.into_iter().map(edge).collect(),
        }
    }

    /// The edges that cross contexts, with both contexts.
    pub fn crossing(&self) -> impl Iterator<Item = (&str, &str, &Edge)> {
        let contexts: BTreeMap<_, _> =
            self.nodes.iter().map(|node| (&*node.id, &*node.context)).collect();
        let contexts = self.edges.iter().filter_map(move |edge| {
            Some((*contexts.get(&*edge.from)?, *contexts.get(&*edge.to)?, edge))
        });
        contexts.filter(|(from, to, _)| from != to)
    }

    /// A context, with the events that lead into it, and the parts that its own events lead to. `None` if no context
    /// has this name.
    #[must_use]
    pub fn of_context(&self, context: &str) -> Option<Self> {
        let own = self.nodes.iter().filter(|node| node.context == context);
        let own: BTreeSet<_> = own.map(|node| &*node.id).collect();
        let mut ids = own.clone();
        for Edge { from, to, does } in &self.edges {
            if *does != EdgeKind::Reads && (own.contains(&**from) || own.contains(&**to)) {
                ids.extend([&**from, &**to]);
            }
        }
        (!own.is_empty()).then(|| self.with(&ids, |edge| edge.does != EdgeKind::Reads))
    }

    /// A slice with its neighbours: what leads to it, what it writes and reads, and what its events lead to. `None` if
    /// no slice has this id.
    #[must_use]
    pub fn of_slice(&self, slice: &str) -> Option<Self> {
        self.get(slice).filter(|node| node.is_slice())?;
        let near = |ids: &BTreeSet<&str>, is_back: bool| {
            let lead = self.edges.iter().filter(|edge| edge.does != EdgeKind::Reads);
            let ends = lead.map(|Edge { from, to, .. }| match is_back {
                true => (&**to, &**from),
                false => (&**from, &**to),
            });
            ends.filter(|(near, _)| ids.contains(near)).map(|(_, far)| far).collect()
        };
        let here = BTreeSet::from([slice]);
        let mut ids = here.clone();
        for is_back in [false, true] {
            let first: BTreeSet<&str> = near(&here, is_back);
            let second: BTreeSet<&str> = near(&first, is_back);
            ids.extend(first.into_iter().chain(second));
        }
        let read =
            self.edges.iter().filter(|edge| edge.does == EdgeKind::Reads && edge.to == slice);
        ids.extend(read.map(|edge| &*edge.from));
        Some(self.with(&ids, |edge| edge.does != EdgeKind::Reads || edge.to == slice))
    }

    /// The map without the events that decisions read, which are in [`Node::reads`] too.
    #[must_use]
    pub fn without_reads(&self) -> Self {
        let ids = self.nodes.iter().map(|node| &*node.id).collect();
        self.with(&ids, |edge| edge.does != EdgeKind::Reads)
    }

    /// The nodes with these ids.
    #[must_use]
    pub fn of_ids(&self, ids: &BTreeSet<String>) -> Self {
        self.with(&ids.iter().map(|id| &**id).collect(), |_| true)
    }

    fn with(&self, ids: &BTreeSet<&str>, has: impl Fn(&Edge) -> bool) -> Self {
        let has_node = |id: &str| ids.contains(id);
        let nodes: Vec<_> = self.nodes.iter().filter(|node| has_node(&node.id)).cloned().collect();
        let is_used = |context: &&String| nodes.iter().any(|node| node.context == **context);
        let contexts = self.contexts.iter().filter(is_used).cloned().collect();
        let edges = self.edges.iter().filter(|edge| has(edge));
        let edges = edges.filter(|edge| has_node(&edge.from) && has_node(&edge.to));
        Self { contexts, edges: edges.cloned().collect(), nodes }
    }
}
