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

/// Lets fire-deadlines carry out commands on the table of a log. `key` is what the streams of a context begin with; the DCB
/// log has none, and one statement for all contexts.
pub(crate) fn allow_to_fire(
    text: &str,
    sid: &str,
    table: &str,
    key: Option<&str>,
) -> Result<String> {
    const ROLE: &str = "FireDeadlinesRole";
    let found = resources(text);
    let role = found.iter().find(|(id, ..)| *id == ROLE);
    let (_, begin, end) = role.with_context(|| {
        format!("lacks {ROLE}: copy it, and the function FireDeadlines, from a new stack's")
    })?;
    let block = &text[*begin..*end];
    let is_allowed = match key {
        Some(_) => block.contains(&format!("Sid: {sid}\n")),
        None => block.contains(&format!("!GetAtt {table}Arn.Value")),
    };
    if is_allowed {
        return Ok(text.to_owned());
    }
    let condition = key.map(|key| {
        format!(
            "                Condition: {{ \"ForAllValues:StringLike\": {{ dynamodb:LeadingKeys: [\"{key}*\"] }} }}\n"
        )
    });
    let statement = format!(
        "              - Sid: {sid}\n                Effect: Allow\n                Action: [dynamodb:GetItem, \
         dynamodb:PutItem, dynamodb:Query]\n                Resource: !GetAtt {table}Arn.Value\n{}",
        condition.unwrap_or_default()
    );
    let at = begin + block.trim_end().len() + 1;
    Ok(format!("{}{statement}{}", &text[..at], &text[at..]))
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
