//! Draws a map as SVG.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};

use super::lay_out::{Rect, lay_out, text_width};
use super::model::{Edge, EdgeKind, Map, MapBoundary, Node, NodeKind};

/// The style of every picture, for a page with the console's colours.
pub const MAP_STYLE: &str = include_str!("map.css");
/// The colours of a picture that stands alone, in light and dark.
const COLOURS: &str = include_str!("colours.css");
/// The space for the legend below the lanes.
const LEGEND_HEIGHT: i32 = 34;
const ROUND: i32 = 6;

/// A picture of a map.
pub struct Svg<'a> {
    /// The map.
    pub map: &'a Map,
    /// Its name for people who can't see it.
    pub title: &'a str,
    /// The address of a node's page.
    pub url: &'a dyn Fn(&Node) -> Option<String>,
    /// The address of a context's page.
    pub lane_url: &'a dyn Fn(&str) -> Option<String>,
    /// What happens at the nodes, by their ids.
    pub notes: &'a BTreeMap<String, Note>,
    /// Events of the last hour, by the ids of an edge's ends.
    pub rates: &'a BTreeMap<(String, String), u64>,
}

/// What happens at a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// In words, such as `12 an hour`.
    pub text: String,
    /// Something is wrong there.
    pub is_wrong: bool,
    /// The present step of a replay is there.
    pub is_now: bool,
    /// A step before the present one was there.
    pub was: bool,
}

impl Svg<'_> {
    /// A picture for a page with the console's style.
    #[must_use]
    pub fn markup(&self) -> Markup {
        self.picture(None)
    }

    /// A picture as a file.
    #[must_use]
    pub fn file(&self) -> String {
        format!("{}\n", self.picture(Some(&format!("{COLOURS}{MAP_STYLE}"))).into_string())
    }

    fn picture(&self, style: Option<&str>) -> Markup {
        let layout = lay_out(self.map);
        let legend = self.legend(layout.height);
        let width = layout.width.max(legend.1);
        let height = layout.height + LEGEND_HEIGHT;
        html! {
            svg class="map" xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) }
                width=(width) height=(height) role="group" aria-label=(self.title) {
                title { (self.title) }
                @if let Some(style) = style { style { (PreEscaped(style)) } }
                @if style.is_some() { rect.paper width="100%" height="100%" {} }
                @for (place, (context, lane)) in self.map.contexts.iter().zip(&layout.lanes).enumerate() {
                    (self.lane(context, *lane, place, width))
                }
                g.lines { @for (edge, line) in self.map.edges.iter().zip(&layout.lines) { (self.line(edge, line)) } }
                @for (node, at) in self.map.nodes.iter().zip(&layout.boxes) { (self.node(node, *at)) }
                (legend.0)
            }
        }
    }

    fn lane(&self, context: &str, lane: Rect, place: usize, width: i32) -> Markup {
        let class = if place.is_multiple_of(2) { "lane" } else { "lane other" };
        html! {
            @if !context.is_empty() {
                rect class=(class) y=(lane.y) width=(width) height=(lane.height) {}
                @let label = html! {
                    rect.hit x="0" y=(lane.y) width=(text_width(context) + 24) height="26" {}
                    text.context x="12" y=(lane.y + 18) { (context) }
                };
                @match (self.lane_url)(context) {
                    Some(url) => { a href=(url) aria-label={ "context " (context) } { (label) } }
                    None => { (label) }
                }
            }
        }
    }

    fn line(&self, edge: &Edge, points: &[(i32, i32)]) -> Markup {
        let Some((end_x, end_y)) = points.last() else { return html! {} };
        let rate = self.rates.get(&(edge.from.clone(), edge.to.clone())).copied().unwrap_or(0);
        // Ten times the events are one step wider, at most five steps.
        let wide = rate.checked_ilog10().map_or(0, |tens| tens + 1).min(5);
        let kind = match edge.does {
            EdgeKind::Reads => "read".to_owned(),
            EdgeKind::Sets => format!("sets reaction wide-{wide}"),
            EdgeKind::Shows => format!("view wide-{wide}"),
            EdgeKind::Writes | EdgeKind::Reacts => format!("wide-{wide}"),
        };
        let class = format!("line {kind}");
        let head = format!("M{} {}l-7 -4v8z", end_x, end_y);
        html! {
            g class=(class) data-from=(edge.from) data-to=(edge.to) {
                @if rate > 0 { title { (rate) " in the last hour" } }
                path d=(path(points)) {}
                path.head d=(head) {}
            }
        }
    }

    fn node(&self, node: &Node, at: Rect) -> Markup {
        let note = self.notes.get(&node.id);
        let is = |name: &str, is: fn(&Note) -> bool| match note.is_some_and(is) {
            true => format!(" {name}"),
            false => String::new(),
        };
        let class = format!(
            "node {}{}{}{}",
            node.kind.class(),
            is("wrong", |note| note.is_wrong),
            is("now", |note| note.is_now),
            is("was", |note| note.was)
        );
        let what = match note.filter(|note| !note.text.is_empty()) {
            Some(note) => note.text.clone(),
            None => node.what.clone(),
        };
        let is_read = |read: &&Node| node.reads.iter().any(|it| it.events.contains(&read.id));
        let reads: Vec<_> = self.map.nodes.iter().filter(is_read).map(|read| &*read.id).collect();
        let content = html! {
            title { (words(node)) }
            rect.box x=(at.x) y=(at.y) width=(at.width) height=(at.height) rx="5" {}
            @if node.also_reacts() {
                rect.also x=(at.x + at.width - 9) y=(at.y + 4) width="5" height=(at.height - 8) rx="2" {}
            }
            @if node.personal {
                (person(at.x + at.width - if node.also_reacts() { 24 } else { 16 }, at.y + 8))
            }
            (icon(node.kind, at.x + 10, at.y + 10))
            text.name x=(at.x + 28) y=(at.y + 17) { (node.name) }
            text.what x=(at.x + 28) y=(at.y + 32) { (what) }
        };
        let reads = (!reads.is_empty()).then(|| reads.join(" "));
        html! {
            @match (self.url)(node) {
                Some(url) => {
                    a class=(class) href=(url) data-id=(node.id) data-reads=[reads] {
                        (content)
                    }
                }
                None => { g class=(class) { (content) } }
            }
        }
    }

    /// The legend, and its width.
    fn legend(&self, y: i32) -> (Markup, i32) {
        let kinds = [NodeKind::Command, NodeKind::Event, NodeKind::View, NodeKind::Reaction];
        let words = ["command", "event", "view", "automation, deadline, reactor"];
        let has = |kind: NodeKind| self.map.nodes.iter().any(|node| node.kind == kind);
        let mut x = 12;
        let mut items = html! {};
        for (kind, word) in kinds.into_iter().zip(words).filter(|(kind, _)| has(*kind)) {
            let item = html! {
                (items)
                g class={ "node " (kind.class()) } {
                    (icon(kind, x, y + 13))
                    text.what x=(x + 18) y=(y + 23) { (word) }
                }
            };
            items = item;
            x += 40 + text_width(word);
        }
        for (kind, word) in [
            (EdgeKind::Sets, "dotted: sets or clears a deadline"),
            (EdgeKind::Reads, "dashed: a decision reads it"),
        ] {
            if self.map.edges.iter().any(|edge| edge.does == kind) {
                items = html! { (items) text.what x=(x) y=(y + 23) { (word) } };
                x += 24 + text_width(word);
            }
        }
        if self.map.nodes.iter().any(|node| node.personal) {
            let word = "personal data";
            items = html! {
                (items)
                g class="node context" { (person(x, y + 13)) text.what x=(x + 16) y=(y + 23) { (word) } }
            };
            x += 40 + text_width(word);
        }
        (items, x)
    }
}

/// A node in words.
fn words(node: &Node) -> String {
    let mut words = format!("{}: {}", node.name, node.words());
    if !node.about.is_empty() {
        words.push_str(&format!(". {}", node.about.trim_end_matches('.')));
    }
    let boundary = |boundary: &MapBoundary| format!("{} ({})", boundary.shape, boundary.names());
    if !node.reads.is_empty() {
        let reads: Vec<_> = node.reads.iter().map(boundary).collect();
        words.push_str(&format!(". Its decision reads {}", reads.join("; ")));
    }
    words
}

/// A path with round corners.
fn path(points: &[(i32, i32)]) -> String {
    let mut path = String::new();
    for (place, (x, y)) in points.iter().copied().enumerate() {
        let near = |to: Option<&(i32, i32)>| {
            let (to_x, to_y) = to.copied()?;
            let step = |from: i32, to: i32| from + (to - from).clamp(-ROUND, ROUND);
            // Half of a short piece is left for its other corner.
            let half = |from: i32, to: i32| from + (to - from) / 2;
            let end = (step(x, to_x), step(y, to_y));
            let middle = (half(x, to_x), half(y, to_y));
            let far = |(a, b): (i32, i32)| (a - x).abs() + (b - y).abs();
            Some(if far(end) < far(middle) { end } else { middle })
        };
        let before = place.checked_sub(1).and_then(|before| near(points.get(before)));
        match (before, near(points.get(place + 1))) {
            (Some((from_x, from_y)), Some((to_x, to_y))) => {
                path.push_str(&format!("L{from_x} {from_y}Q{x} {y} {to_x} {to_y}"));
            }
            (Some(_), None) => path.push_str(&format!("L{x} {y}")),
            (None, _) => path.push_str(&format!("M{x} {y}")),
        }
    }
    path
}

/// The mark of personal data: a person.
fn person(x: i32, y: i32) -> Markup {
    html! {
        path.icon transform={ "translate(" (x) " " (y) ")" } d="M5 0a2.5 2.5 0 0 1 0 5a2.5 2.5 0 0 1 0-5M0 11a5 5 0 0 1 10 0z" {}
    }
}

/// The shape of a kind, which tells it without its colour.
fn icon(kind: NodeKind, x: i32, y: i32) -> Markup {
    let shape = match kind {
        NodeKind::Command => "0,0 6,0 11,5.5 6,11 0,11",
        NodeKind::Event => "0,0 11,0 11,7 7,11 0,11",
        NodeKind::View => "0,0 11,0 11,3 0,3 0,4.5 11,4.5 11,7 0,7 0,8.5 11,8.5 11,11 0,11",
        NodeKind::Reaction => "7,0 1,6.5 5,6.5 4,11 10,4.5 6,4.5",
        NodeKind::Context => "0,0 11,0 11,11 0,11",
    };
    html! { polygon.icon transform={ "translate(" (x) " " (y) ")" } points=(shape) {} }
}
