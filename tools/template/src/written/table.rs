//! Adds settings to the table under `Metadata`, line by line, so everything else stays as a person wrote it.

use serde_yaml_ng::Value;

use super::edits::setting;
use super::error::WriteError;
use super::flow::flow;
use super::settings::Settings;
use super::source::SECTIONS;

const HEAD: &str = "Ringfence: # settings of what is written below, by logical id";

/// The template with the settings that it does not have yet.
///
/// # Errors
/// The table has a form to which a line can't be added.
pub(super) fn with_settings(
    text: &str,
    had: &Settings,
    settings: &Settings,
) -> Result<String, WriteError> {
    let (mut lines, mut all): (Vec<String>, _) =
        (text.split_inclusive('\n').map(str::to_owned).collect(), Vec::new());
    for (id, of) in &settings.0 {
        let (id, of) = (flow(id), of.as_mapping().cloned().unwrap_or_default());
        for (name, value) in of.iter().map(|(name, value)| (flow(name), value)) {
            if had.get(&id, &name).is_none() {
                all.push(setting(&id, &name, &flow(value)));
                add(&mut lines, &id, &name, &flow(value));
            }
        }
    }
    if all.is_empty() {
        return Ok(text.to_owned());
    }
    let text = lines.concat();
    let read = serde_yaml_ng::from_str::<Value>(&text).ok();
    match read.and_then(|read| Settings::of(&read).ok()) {
        Some(read) if read == *settings => Ok(text),
        _ => Err(WriteError::Settings(format!(
            "no line can be added to Metadata: Ringfence in the form that it has: {}",
            all.join("; ")
        ))),
    }
}

/// Adds a setting.
fn add(lines: &mut Vec<String>, id: &str, name: &str, value: &str) {
    let Some(metadata) = lines.iter().position(|line| line.starts_with("Metadata:")) else {
        let is_first = |line: &String| {
            SECTIONS
                .iter()
                .any(|name| line.strip_prefix(name).is_some_and(|it| it.starts_with(':')))
        };
        let at = lines.iter().position(is_first).unwrap_or(lines.len());
        let table = ["Metadata:\n", &format!("  {HEAD}\n"), &entry(4, id, name, value), "\n"];
        lines.splice(at..at, table.map(str::to_owned));
        return;
    };
    let inner = depth_of_first(lines, metadata).unwrap_or(2);
    let Some(table) = child(lines, metadata, "Ringfence") else {
        let table = [format!("{}{HEAD}\n", " ".repeat(inner)), entry(inner + 2, id, name, value)];
        lines.splice(metadata + 1..metadata + 1, table);
        return;
    };
    let depth = depth_of_first(lines, table).unwrap_or(inner + 2);
    let Some(of) = child(lines, table, id) else {
        let end = end(lines, table);
        lines.insert(end, entry(depth, id, name, value));
        return;
    };
    let last = end(lines, of);
    if let Some(depth) = depth_of_first(lines, of).filter(|_| !lines[of].contains('{')) {
        lines.insert(last, format!("{}{name}: {value}\n", " ".repeat(depth)));
        return;
    }
    if let Some((before, after)) = lines[last - 1].rsplit_once('}') {
        let before = before.trim_end();
        let comma = if before.ends_with('{') { "" } else { "," };
        lines[last - 1] = format!("{before}{comma} {name}: {value} }}{after}");
    }
}

fn entry(depth: usize, id: &str, name: &str, value: &str) -> String {
    format!("{}{id}: {{ {name}: {value} }}\n", " ".repeat(depth))
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_text(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

/// The depth of the lines below a line.
fn depth_of_first(lines: &[String], of: usize) -> Option<usize> {
    let next = lines[of + 1..].iter().find(|line| is_text(line))?;
    Some(depth(next)).filter(|it| *it > depth(&lines[of]))
}

/// The end of the lines below a line: after the last one with text.
fn end(lines: &[String], of: usize) -> usize {
    let below =
        lines[of + 1..].iter().take_while(|line| !is_text(line) || depth(line) > depth(&lines[of]));
    let last = below.enumerate().filter(|(_, line)| is_text(line)).last();
    of + 1 + last.map_or(0, |(at, _)| at + 1)
}

/// The line of this name below a line.
fn child(lines: &[String], of: usize, name: &str) -> Option<usize> {
    let depth_of = depth_of_first(lines, of)?;
    (of + 1..end(lines, of)).find(|at| {
        let text = lines[*at].trim_start();
        depth(&lines[*at]) == depth_of
            && text.strip_prefix(name).is_some_and(|it| it.starts_with(':'))
    })
}
