//! The files with the map of a stack: `docs/map.md` and `docs/map.svg`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::draw::Svg;
use super::mermaid::{event_modeling, flowchart};
use super::model::{Map, NodeKind};

/// The page and the picture, in the folder of a stack.
const MAP_FILES: [&str; 2] = ["docs/map.md", "docs/map.svg"];

/// The files that the stack in this folder lacks, or has in another form: their paths in it, and their texts. A stack
/// without contexts has no map, so then a file has no text.
#[must_use]
pub fn stale_map_files(map: &Map, root: &Path) -> Vec<(String, Option<String>)> {
    let texts = [page(map), picture(&map.without_reads())];
    let stale = MAP_FILES.into_iter().zip(texts).map(|(path, text)| {
        let wanted = (!map.nodes.is_empty()).then_some(text);
        (path, fs::read_to_string(root.join(path)).ok(), wanted)
    });
    stale
        .filter(|(_, found, wanted)| found != wanted)
        .map(|(path, _, text)| (path.to_owned(), text))
        .collect()
}

/// The picture of a map as a file, without links.
#[must_use]
pub fn picture(map: &Map) -> String {
    let (notes, rates) = (BTreeMap::new(), BTreeMap::new());
    let svg = Svg {
        map,
        title: "The map of the stack: commands, events, views and reactions by context",
        url: &|_| None,
        lane_url: &|_| None,
        notes: &notes,
        rates: &rates,
    };
    svg.file()
}

/// The page with the map as text.
fn page(map: &Map) -> String {
    let mut page = "# Map\n\nThis page follows from the list of the stack: `UPDATE=1 cargo test` writes it.\n\n\
                    ![The map of the stack](map.svg)\n"
        .to_owned();
    let is_drawn = |context: &&String| {
        map.nodes.iter().any(|node| node.context == **context && node.kind != NodeKind::Event)
    };
    for context in map.contexts.iter().filter(is_drawn) {
        let text = event_modeling(map, context);
        let _ = write!(page, "\n## {context}\n\n```mermaid\n{text}```\n");
    }
    let _ = write!(page, "\n## The whole stack\n\n```mermaid\n{}```\n", flowchart(map));
    page
}
