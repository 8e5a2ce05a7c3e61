//! A template that was written by hand, or edited between its marks, in the form that `ringfence template` writes. What it
//! does not know stays below the marks. A setting that differs goes into the table under `Metadata`.

use ringfence_new::marks::{Section, sections};
use ringfence_stack::Stack;
use serde_yaml_ng::{Mapping, Value};

use super::edits::{Change, FROM_LIST, changes, entries};
use super::error::WriteError;
use super::settings::{Settings, flow};
use super::source::{SECTIONS, Source, StackPlace};
use super::write::written;

/// A template that was taken over.
#[derive(Debug)]
pub struct Adopted {
    /// Its text.
    pub text: String,
    /// What is not in it any more, a line each.
    pub lost: Vec<String>,
}

/// Takes over a template.
///
/// # Errors
/// As [`written`].
pub fn adopted(text: &str, stack: &Stack, place: &StackPlace) -> Result<Adopted, WriteError> {
    let mut source = Source::of(text, stack, place, None)?;
    let known = Source { all: true, ..Source::of(text, stack, place, None)? };
    let mut lost = Vec::new();
    // Who may use the API decides about the scopes of routes, and a function's condition is that of its role. So roles are
    // compared in the second round.
    for with_roles in [false, true] {
        lost.clear();
        for Section { name, block, after, .. } in sections(text) {
            if !SECTIONS.contains(&name) {
                continue;
            }
            let fresh = entries(&source.body(name)?)?;
            let all = entries(&known.body(name)?)?;
            let found = block.map(|block| block.body).unwrap_or_default().to_owned() + after;
            for (id, entry) in &entries(&found)? {
                let id = flow(id);
                let changes = match fresh.get(&id) {
                    Some(fresh) if with_roles || !id.ends_with("Role") => {
                        let entry = without_written(entry, fresh, all.get(&id));
                        changes(name, &id, &entry, fresh)
                    }
                    None if all.contains_key(&id) => vec![Change::Lost(format!("{name}: {id}"))],
                    _ => Vec::new(),
                };
                for change in changes {
                    match change {
                        Change::Set { id, name, value } => source.settings.set(&id, &name, value),
                        Change::Lost(what) => lost.push(what),
                    }
                }
            }
        }
        source.takes_tokens = source.settings.takes_tokens();
    }
    // That these differ is how they are written now.
    let is_form = |what: &str| {
        let of = |property: &&str| what.starts_with(&format!("{property} of "));
        FROM_LIST.iter().filter(|property| **property != "Events").any(of)
    };
    lost.retain(|what| !is_form(what));
    let mut own = String::new();
    for Section { name, before, block, after } in sections(text) {
        let body = block.map(|block| block.body).unwrap_or_default();
        let kept = match SECTIONS.contains(&name) {
            true => {
                let all = entries(&known.body(name)?)?;
                kept(&format!("{body}{after}"), &all)
            }
            false => after.to_owned(),
        };
        own += before;
        own += &kept;
    }
    let own = with_settings(&own, &source.settings);
    Ok(Adopted { text: written(&own, stack, place, Some(&source.kept_grants()))?, lost })
}

/// An entry without the variables that other stacks have written: they are not a team's own. This one has no log of
/// theirs.
fn without_written(entry: &Value, fresh: &Value, any: Option<&Value>) -> Value {
    let mut entry = entry.clone();
    for path in [&["Environment", "Variables"][..], &["Properties", "Environment", "Variables"]] {
        let of = |value: &Value, name: &Value| {
            path.iter().try_fold(value, |of, key| of.get(*key))?.get(name).cloned()
        };
        let found = path.iter().try_fold(&mut entry, |of, key| of.get_mut(*key));
        if let Some(found) = found.and_then(Value::as_mapping_mut) {
            found.retain(|name, value| {
                of(fresh, name).is_some()
                    || any.and_then(|any| of(any, name)).as_ref() != Some(&*value)
            });
        }
    }
    entry
}

/// The entries of a section that are not known, each with the comments before it.
fn kept(body: &str, known: &Mapping) -> String {
    let (mut kept, mut lead, mut keeps) = (String::new(), String::new(), true);
    for line in body.split_inclusive('\n') {
        let is_entry =
            line.starts_with("  ") && !line.starts_with("   ") && !line.starts_with("  #");
        if is_entry {
            let id = line.trim().split(':').next().unwrap_or_default();
            keeps = !known.contains_key(id);
            if keeps {
                kept += &lead;
            }
            lead.clear();
        } else if line.trim().is_empty() || line.starts_with("  #") {
            lead += line;
            continue;
        } else if keeps {
            kept += &lead;
        }
        lead.clear();
        if keeps {
            kept += line;
        }
    }
    if lead.ends_with("\n") && (kept.is_empty() || kept.ends_with('\n')) && lead.trim().is_empty() {
        kept += "\n";
    }
    kept
}

/// The template with the table of settings.
fn with_settings(text: &str, settings: &Settings) -> String {
    if settings.0.is_empty() {
        return text.to_owned();
    }
    let lines = settings.0.iter().map(|(id, of)| format!("    {}: {}\n", flow(id), flow(of)));
    let table = format!(
        "  Ringfence: # settings of what is written below, by logical id\n{}",
        lines.collect::<String>()
    );
    let (mut all, mut is_written) = (String::new(), false);
    for Section { name, before, after, .. } in sections(text) {
        if !is_written && (name == "Metadata" || SECTIONS.contains(&name)) {
            is_written = true;
            if name == "Metadata" {
                let had = [("Ringfence".into(), Value::Null)].into_iter().collect();
                all += &format!("{before}{table}{}", kept(after, &had));
                continue;
            }
            all += &format!("Metadata:\n{table}\n");
        }
        all += before;
        all += after;
    }
    all
}
