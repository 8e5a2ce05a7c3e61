//! Links to the parts of a stack.

use maud::Markup;
use ringfence_stack::SliceInfo;
use ringfence_template::map::{Node, NodeKind};

use crate::frame::{Kind, chip, slice_url};

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

/// The page of a node: a slice has one of its own, beside its map.
pub(crate) fn page_url(node: &Node) -> Option<String> {
    match node.kind {
        NodeKind::Command | NodeKind::Reaction if !node.is_reactor() => Some(slice_url(&node.id)),
        _ => node_url(node),
    }
}

/// The kind of a slice: a command if callers may give it, as on the map.
pub(crate) fn slice_kind(slice: &SliceInfo) -> Kind {
    if slice.scopes.is_some() { Kind::Command } else { Kind::Reaction }
}

/// A link with the name of a node.
pub(crate) fn link(node: &Node, url: &str) -> Markup {
    let kind = match node.kind {
        NodeKind::Command | NodeKind::Context => Kind::Command,
        NodeKind::Event => Kind::Event,
        NodeKind::View => Kind::View,
        NodeKind::Reaction => Kind::Reaction,
    };
    chip(kind, &node.name, url)
}
