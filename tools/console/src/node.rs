//! Links to the parts of a stack.

use maud::Markup;
use ringfence_stack::{ContextInfo, SliceInfo};
use ringfence_template::map::{Node, NodeKind};

use crate::frame::{Kind, chip, slice_url};

/// The address of a node: a slice leads to its own map.
pub(crate) fn node_url(node: &Node) -> String {
    match node.kind {
        NodeKind::Context => format!("/map/{}", node.name),
        NodeKind::Event => format!("/types/{}", node.name),
        NodeKind::View => format!("/views/{}", node.name),
        NodeKind::Reaction if node.is_reactor() => "/lanes".to_owned(),
        NodeKind::Command | NodeKind::Reaction => format!("/map/{}", node.id),
    }
}

/// The page of a node: a slice has one of its own, beside its map.
pub(crate) fn page_url(node: &Node) -> String {
    if node.is_slice() { slice_url(&node.id) } else { node_url(node) }
}

/// A link with the name of a node, to its page.
pub(crate) fn page_link(node: &Node) -> Markup {
    link(node, &page_url(node))
}

/// A link with the name of a node.
pub(crate) fn link(node: &Node, url: &str) -> Markup {
    chip(of(node.kind), &node.name, url)
}

/// The kind of a slice, as on the map.
pub(crate) fn slice_kind(context: &ContextInfo, slice: &SliceInfo) -> Kind {
    of(NodeKind::of_slice(context, slice))
}

fn of(kind: NodeKind) -> Kind {
    match kind {
        NodeKind::Command | NodeKind::Context => Kind::Command,
        NodeKind::Event => Kind::Event,
        NodeKind::View => Kind::View,
        NodeKind::Reaction => Kind::Reaction,
    }
}
