//! `ringfence map`: the map of the stack as text, as data, or as a picture.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use ringfence_new::near;
use ringfence_template::map::{EdgeKind, Map, flowchart, picture};

use crate::{Lists, out};

#[derive(Args)]
#[command(after_help = "\
It follows from the list of the stack alone, and asks nothing of AWS. The whole map is in docs/map.md and docs/map.svg
too, which `UPDATE=1 cargo test` writes.

Examples:
  ringfence map
  ringfence map --context ordering --svg > ordering.svg
  ringfence map --slice ordering/place-order --json")]
pub(crate) struct Arguments {
    /// Shows this context, with what leads into it and out of it.
    #[arg(long, value_name = "NAME", conflicts_with = "slice")]
    context: Option<String>,
    /// Shows this slice, with its neighbours.
    #[arg(long, value_name = "CONTEXT/SLICE")]
    slice: Option<String>,
    /// Prints the map as JSON.
    #[arg(long, group = "form")]
    json: bool,
    /// Prints the picture, which is right in light and dark.
    #[arg(long, group = "form")]
    svg: bool,
    /// Prints a flowchart for Mermaid.
    #[arg(long, group = "form")]
    mermaid: bool,
}

pub(crate) fn map(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let whole = Map::of(&lists.stack);
    ensure!(!whole.nodes.is_empty(), "the stack has no context yet: `cargo new-context` makes one");
    let map = match (&arguments.context, &arguments.slice) {
        (Some(name), _) => {
            let names = whole.contexts.iter().map(|context| &**context).collect();
            let unknown = || format!("the stack has no context {name}{}", near(name, &names));
            whole.of_context(name).with_context(unknown)?
        }
        (None, Some(name)) => {
            let names = whole.nodes.iter().map(|node| &*node.id).collect();
            let unknown = || format!("the stack has no slice {name}{}", near(name, &names));
            whole.of_slice(name).with_context(unknown)?
        }
        (None, None) => whole,
    };
    if arguments.json {
        out::lines(&format!("{:#}\n", serde_json::to_value(&map)?));
    } else if arguments.svg {
        let is_of_slice = arguments.slice.is_some();
        out::file(&picture(&if is_of_slice { map } else { map.without_reads() }));
    } else if arguments.mermaid {
        out::lines(&flowchart(&map));
    } else {
        out::lines(&text(&map));
    }
    Ok(ExitCode::SUCCESS)
}

/// Each node below its context, with its edges below it.
fn text(map: &Map) -> String {
    let mut text = String::new();
    for context in &map.contexts {
        let _ = writeln!(text, "{context}");
        for node in map.nodes.iter().filter(|node| node.context == *context) {
            let _ = writeln!(text, "  {} ({})", node.name, node.words());
            for boundary in &node.reads {
                let _ = writeln!(text, "    reads {}: {}", boundary.shape, boundary.names());
            }
            let edges = map.edges.iter().filter(|edge| edge.from == node.id);
            for edge in edges.filter(|edge| edge.does != EdgeKind::Reads) {
                let _ = writeln!(text, "    {} {}", edge.does.words(), edge.to);
            }
        }
    }
    text
}
