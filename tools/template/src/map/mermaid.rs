//! The map as text for Mermaid, which GitHub and editors draw.

use std::collections::BTreeMap;
use std::fmt::Write;

use heck::ToUpperCamelCase;

use super::model::{Edge, EdgeKind, Map, Node, NodeKind};

/// The kinds of nodes with their colours in a flowchart, which are readable on light and dark pages.
const CLASSES: [(NodeKind, &str); 4] = [
    (NodeKind::Command, "fill:#e3edfc,stroke:#1d5fc4,color:#1b1f27"),
    (NodeKind::Event, "fill:#fdecd8,stroke:#b45309,color:#1b1f27"),
    (NodeKind::View, "fill:#e0f3e6,stroke:#1a7f42,color:#1b1f27"),
    (NodeKind::Reaction, "fill:#f0e6fa,stroke:#7a3fb5,color:#1b1f27"),
];

/// The map of a context as a diagram of Mermaid's kind `eventmodeling`, which needs Mermaid 11.15 or later.
///
/// Each slice is a row of frames: the event that leads to it, a processor if it reacts, its command, and its events.
/// The views follow.
#[must_use]
pub fn event_modeling(map: &Map, context: &str) -> String {
    let mut frames = Frames { map, text: "eventmodeling\n".to_owned(), count: 0 };
    let mut written = BTreeMap::<&str, usize>::new();
    let own = |kinds: &'static [NodeKind]| {
        let is_own = move |node: &&Node| node.context == context && kinds.contains(&node.kind);
        map.nodes.iter().filter(is_own)
    };
    for slice in own(&[NodeKind::Command, NodeKind::Reaction]) {
        // What a slice writes ends its deadline, and does not lead to it.
        let writes = |event: &Node| {
            map.edges.iter().any(|edge| edge.from == slice.id && edge.to == event.id)
        };
        let causes = frames.ends(slice, &[EdgeKind::Reacts, EdgeKind::Sets]);
        let causes: Vec<_> = causes.into_iter().filter(|event| !writes(event)).collect();
        frames.text.push('\n');
        let causes: Vec<_> =
            causes.iter().map(|cause| frames.frame("rf", "evt", cause, &[])).collect();
        if !causes.is_empty() {
            frames.frame("rf", "pcr", slice, &causes);
        }
        if slice.is_reactor() {
            continue;
        }
        let begin = if causes.is_empty() { "rf" } else { "tf" };
        let command = frames.frame(begin, "cmd", slice, &[]);
        for (place, edge) in map.edges.iter().filter(|edge| edge.from == slice.id).enumerate() {
            let Some(event) = map.get(&edge.to) else { continue };
            let number = match place {
                0 => frames.frame("tf", "evt", event, &[]),
                _ => frames.frame("rf", "evt", event, &[command]),
            };
            written.entry(&event.id).or_insert(number);
        }
    }
    for view in own(&[NodeKind::View]) {
        frames.text.push('\n');
        let shown = frames.ends(view, &[EdgeKind::Shows]);
        let mut sources = Vec::new();
        for event in shown {
            let known = written.get(&*event.id).copied();
            sources.push(known.unwrap_or_else(|| frames.frame("rf", "evt", event, &[])));
        }
        frames.frame("rf", "rmo", view, &sources);
    }
    frames.text
}

/// The text of a diagram so far.
struct Frames<'a> {
    map: &'a Map,
    text: String,
    count: usize,
}

impl<'a> Frames<'a> {
    /// Adds a frame after these ones, and returns its number.
    fn frame(&mut self, begin: &str, kind: &str, node: &Node, after: &[usize]) -> usize {
        self.count += 1;
        let [context, name] = [&node.context, &node.name].map(|name| name.to_upper_camel_case());
        let after: String = after.iter().map(|number| format!(" ->> {number:02}")).collect();
        let _ = writeln!(self.text, "{begin} {:02} {kind} {context}.{name}{after}", self.count);
        self.count
    }

    /// The events from which such edges lead to a node.
    fn ends(&self, node: &Node, does: &[EdgeKind]) -> Vec<&'a Node> {
        let lead = self.map.edges.iter();
        let lead = lead.filter(|edge| edge.to == node.id && does.contains(&edge.does));
        lead.filter_map(|edge| self.map.get(&edge.from)).collect()
    }
}

/// The map as a flowchart, which older versions of Mermaid draw too.
#[must_use]
pub fn flowchart(map: &Map) -> String {
    let mut text = "flowchart LR\n".to_owned();
    let numbers: BTreeMap<_, _> = map.nodes.iter().map(|node| &*node.id).zip(1..).collect();
    for context in &map.contexts {
        let nodes = map.nodes.iter().filter(|node| node.context == *context);
        let _ = writeln!(text, "  subgraph {context}");
        for node in nodes {
            let _ = writeln!(text, "    n{}{}", numbers[&*node.id], shape(node));
        }
        let _ = writeln!(text, "  end");
    }
    for Edge { from, to, .. } in map.edges.iter().filter(|edge| edge.does != EdgeKind::Reads) {
        let _ = writeln!(text, "  n{} --> n{}", numbers[&**from], numbers[&**to]);
    }
    for (kind, style) in CLASSES {
        let of_kind = map.nodes.iter().filter(|node| node.kind == kind);
        let of_kind: Vec<_> = of_kind.map(|node| format!("n{}", numbers[&*node.id])).collect();
        if !of_kind.is_empty() {
            let class = kind.class();
            let _ = writeln!(text, "  classDef {class} {style}");
            let _ = writeln!(text, "  class {} {class}", of_kind.join(","));
        }
    }
    text
}

/// A name with the shape of its kind.
fn shape(node: &Node) -> String {
    let name = format!("{}{}", node.name, if node.personal { " (personal data)" } else { "" });
    match node.kind {
        NodeKind::Command | NodeKind::Context => format!("[\"{name}\"]"),
        NodeKind::Event => format!("([\"{name}\"])"),
        NodeKind::View => format!("[/\"{name}\"/]"),
        NodeKind::Reaction => format!("{{{{\"{name}\"}}}}"),
    }
}
