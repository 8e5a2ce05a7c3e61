//! Changes to the text of `template.yaml`.

use anyhow::{Context, Result, ensure};

/// The resources of a template, each as its logical id, where it begins and where it ends.
fn resources(text: &str) -> Vec<(&str, usize, usize)> {
    let mut found: Vec<(&str, usize, usize)> = Vec::new();
    let (mut at, mut inside, mut open) = (0, false, false);
    for line in text.split_inclusive('\n') {
        let is_inner = line.starts_with("   ") || line.trim().is_empty();
        if !line.starts_with([' ', '#', '\n']) {
            inside = line.starts_with("Resources:");
            open = false;
        } else if inside && !is_inner {
            // A comment at the depth of a resource belongs to what follows.
            open = line.starts_with("  ") && !line.trim_start().starts_with('#');
            if open {
                let id = line.trim().split(':').next().unwrap_or_default();
                found.push((id, at, at));
            }
        }
        at += line.len();
        if let Some((_, _, end)) = found.last_mut().filter(|_| open && is_inner) {
            *end = at;
        }
    }
    found
}

/// The end of the last resource that `is_one` accepts.
fn end_of_last(text: &str, is_one: impl Fn(&str, &str) -> bool) -> Option<usize> {
    let found = resources(text);
    let last = found.iter().rev().find(|(id, begin, end)| is_one(id, &text[*begin..*end]));
    last.map(|(_, _, end)| *end)
}

/// Whether the template has a resource of this logical id.
pub(crate) fn has(text: &str, id: &str) -> bool {
    resources(text).iter().any(|(found, ..)| *found == id)
}

/// The binary's function.
pub(crate) fn is_of_binary(block: &str, binary: &str) -> bool {
    block.contains(&format!("Binary: {binary} ")) || block.contains(&format!("Binary: {binary}\n"))
}

/// Adds the function of a binary after the last one that has the same role, or after the role.
pub(crate) fn add_function(text: &str, binary: &str, role: &str, block: &str) -> Result<String> {
    if end_of_last(text, |_, found| is_of_binary(found, binary)).is_some() {
        return Ok(text.to_owned());
    }
    let id = block.trim_start().split(':').next().unwrap_or_default();
    ensure!(!has(text, id), "has a resource {id} already, so choose another name than {binary}");
    let with_role = format!("Role: !GetAtt {role}.Arn");
    let at = end_of_last(text, |_, found| found.contains(&with_role))
        .or_else(|| end_of_last(text, |id, _| id == role))
        .with_context(|| {
            format!("lacks the role {role}: write it, or copy it from a new stack's")
        })?;
    Ok(insert_block(text, at, block))
}

/// Adds the role of a context's slices, with the heading of its section, before the alarms.
pub(crate) fn add_role(text: &str, role: &str, section: &str) -> Result<String> {
    if has(text, role) {
        return Ok(text.to_owned());
    }
    let is_function = |_: &str, block: &str| block.contains("Type: AWS::Serverless::Function");
    let at = end_of_last(text, is_function).context("lacks functions")?;
    Ok(insert_block(text, at, section))
}

/// A resource ends with the empty line after it, and so does what is inserted.
fn insert_block(text: &str, at: usize, block: &str) -> String {
    let (before, after) = text.split_at(at);
    let gap = if before.ends_with("\n\n") { "" } else { "\n" };
    format!("{before}{gap}{block}{after}")
}

/// Replaces the actions of a role, if it has just these.
pub(crate) fn allow_more(text: &str, role: &str, from: &str, to: &str) -> Result<String> {
    let found = resources(text);
    let (_, begin, end) = found.iter().find(|(id, ..)| *id == role).context("lacks the role")?;
    let block = text[*begin..*end].replacen(&format!("[{from}]"), &format!("[{to}]"), 1);
    Ok(format!("{}{block}{}", &text[..*begin], &text[*end..]))
}

/// Lets the role send to the queue of automations.
pub(crate) fn allow_letters(text: &str, role: &str) -> Result<String> {
    let found = resources(text);
    let (_, begin, end) = found.iter().find(|(id, ..)| *id == role).context("lacks the role")?;
    if text[*begin..*end].contains("Sid: KeepFailures") {
        return Ok(text.to_owned());
    }
    let statement = "              - { Sid: KeepFailures, Effect: Allow, Action: sqs:SendMessage,\n\
                     \x20                 Resource: !GetAtt AutomationsDeadLetters.Arn }\n";
    let at = begin + text[*begin..*end].trim_end().len() + 1;
    Ok(format!("{}{statement}{}", &text[..at], &text[at..]))
}

/// The binaries that serve all contexts.
const SERVING: [&str; 4] = ["index-events", "project-views", "publish-events", "query-views"];

/// The template without an application: what serves all contexts stays. The functions of contexts go, with their roles,
/// what alarms and the dashboard have of them, and indexes for the tags of contexts.
pub(crate) fn without_contexts(text: &str) -> String {
    let found = resources(text);
    let is_gone = |block: &str| {
        let serves = SERVING.iter().any(|binary| is_of_binary(block, binary));
        block.contains("Binary: ") && !serves
    };
    let gone = found.iter().filter(|(_, begin, end)| is_gone(&text[*begin..*end]));
    let gone: Vec<&str> = gone.map(|(id, ..)| *id).collect();
    let mut bare = String::new();
    let mut at = 0;
    for (id, begin, end) in found {
        bare += &without_headings(&text[at..begin]);
        let block = &text[begin..end];
        let of_gone = gone.contains(&id.strip_suffix("Role").unwrap_or(id));
        if !of_gone && !block.contains("Sid: OwnStreams") {
            bare += &without_metrics(&without_tags(block), &gone);
        }
        at = end;
    }
    bare + &text[at..]
}

/// An alarm or a dashboard without the metrics of functions that are gone.
fn without_metrics(block: &str, gone: &[&str]) -> String {
    const METRIC: &str = "        { Id: ";
    let (mut bare, mut names) = (String::new(), Vec::new());
    for (n, part) in block.split(METRIC).enumerate() {
        if gone.iter().any(|id| part.contains(&format!("!Ref {id} "))) {
            names.extend(part.split(',').next());
        } else {
            bare += if n == 0 { "" } else { METRIC };
            bare += part;
        }
    }
    let of_names =
        names.iter().flat_map(|name| [format!(" + {name}"), format!(" - FILL({name}, 0)")]);
    let bare = of_names.fold(bare, |bare, term| bare.replace(&term, ""));
    let is_shown = |line: &&str| !gone.iter().any(|id| line.contains(&format!("\"${{{id}}}\"")));
    bare.split_inclusive('\n').filter(is_shown).collect()
}

fn without_headings(comments: &str) -> String {
    let lines: Vec<&str> = comments.split_inclusive("\n\n").collect();
    let kept = lines.into_iter().filter(|part| !part.contains(" context, on the "));
    kept.map(without_pages).collect()
}

/// A heading without the pages of Ringfence that it leads to.
fn without_pages(heading: &str) -> String {
    match heading.split_once(": ") {
        Some((title, rest)) if heading.starts_with("  # ---- ") && rest.contains(".md") => {
            let after = rest.split_once(" ----\n").map(|(_, after)| after).unwrap_or_default();
            format!("{title} ----\n{after}")
        }
        _ => heading.to_owned(),
    }
}

/// A resource without what it has for the tags and the names of contexts.
fn without_tags(block: &str) -> String {
    let (mut bare, mut inside) = (String::new(), false);
    for line in block.split_inclusive('\n') {
        inside |= line.starts_with("      # One index for each cross-partition tag key");
        inside &= !line.starts_with("      StreamSpecification:");
        // DynamoDB refuses an attribute that neither the table's key nor an index has.
        let of_index = ["AttributeName: tag_", "AttributeName: at,", "/index/tag_"];
        if inside || of_index.iter().any(|part| line.contains(part)) {
            continue;
        }
        match line.split_once("events:source: [") {
            Some((before, _)) => bare += &format!("{before}events:source: []\n"),
            // Only fences are updated, and no boundary of the example has one.
            None => {
                bare +=
                    &line.replace("ConditionCheckItem, dynamodb:UpdateItem]", "ConditionCheckItem]")
            }
        }
    }
    bare
}
