//! Links to the parts of a stack.

use maud::Markup;
use ringfence_template::map::{Node, NodeKind};

use crate::frame::{Kind, chip};

/// The address of a node: a slice leads to its own map.
pub(crate) fn node_url(node: &Node) -> Option<String> {
    Some(match node.kind {
        NodeKind::Context => format!("/map/{}", node.name),
        NodeKind::Event => format!("/types/{}", node.name),
        NodeKind::View => format!("/views/{}", node.name),
        NodeKind::Reaction if node.is_reactor() => "/lanes".to_owned(),
        NodeKind::Command | NodeKind::Reaction => format!("/map/{}", node.id),
    })
}

/// A link to a node, with its name.
pub(crate) fn link(node: &Node) -> Markup {
    let kind = match node.kind {
        NodeKind::Command | NodeKind::Context => Kind::Command,
        NodeKind::Event => Kind::Event,
        NodeKind::View => Kind::View,
        NodeKind::Reaction => Kind::Reaction,
    };
    chip(kind, &node.name, &node_url(node).unwrap_or_default())
}
