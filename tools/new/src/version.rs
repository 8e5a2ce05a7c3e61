//! Begins the next version of a type of events: its number, the skeletons of its upcast and its downcast, and a test
//! with a payload from the lock. The type still writes the version before it, until `--write` ends that.
//!
//! The lock has the shape of each released version. The next version can begin when the newest one is in the lock. A
//! second run finds a version that is not in the lock, so it has begun already.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use heck::ToSnakeCase;
use serde_json::Value;

use crate::context;
use crate::names::{check, near};
use crate::plan::{Plan, fill};
use crate::source::{EventType, Source, Version};

/// The most characters of a payload's line, without the closing brackets.
const LINE_CHARS_MAX: usize = 97;
/// The number of characters before a payload in its line.
const BEFORE_CHARS: usize = "        let newest = serde_json::json!(".len();

/// A version that has begun.
pub(crate) struct Begun {
    pub(crate) number: u32,
    /// The file of the type.
    pub(crate) file: String,
    /// The file of the lock.
    pub(crate) lock: String,
}

/// Plans the next version of a type of events.
pub(crate) fn add(plan: &mut Plan, context: &str, event: &str) -> Result<Begun> {
    check("the context", context)?;
    let found = context::existing(plan, context)?;
    let (file, event) = declared(plan, &found.folder, context, event)?;
    let lock = format!("schemas/{context}.json");
    let locked = locked(plan, &lock, &event.stored)?;
    let (name, version) = (&event.name, event.version);
    let released = locked.last_key_value().map_or(0, |(number, _)| *number);
    ensure!(
        version >= released,
        "{file} says that {name} has version {version}, and {lock} has version {released}: what was \
         released stays, so put its number and its upcast back"
    );
    ensure!(
        version > 1 || released > 0,
        "{lock} does not have {name} yet, so no event of it is in a log, and its payload can change as it is. To \
         release it, let `UPDATE=1 cargo test` write it there"
    );
    if version > released {
        return Ok(Begun { number: version, file, lock });
    }
    if let Some(writes) = event.writes {
        bail!(
            "{file}: {name} still writes version {writes}: `cargo new-version {context}/{name} --write` lets \
             it write version {version}, and then the next version can begin"
        );
    }
    let next = version + 1;
    ensure!(
        event.upcasts + 1 == version as usize,
        "{file}: {name} has version {version}, and {} upcasts: correct it until it compiles",
        event.upcasts
    );
    let samples = locked[&released]["samples"].as_array();
    // The sample with most fields also has optional ones.
    let fields = |sample: &&Value| sample.as_object().map_or(0, serde_json::Map::len);
    let sample = samples.and_then(|samples| samples.iter().rev().max_by_key(fields));
    let sample = sample.with_context(|| {
        format!(
            "{lock} has no sample of {name}, which the test of an upcast begins with: write a case with such an event, \
             and let `UPDATE=1 cargo test` write it there"
        )
    })?;
    let snake = name.to_snake_case();
    let upcast = format!("{snake}_{version}_to_{next}");
    let downcast = format!("{snake}_{next}_to_{version}");
    let payload = literal(sample, 8, BEFORE_CHARS);
    let (from, to) = (version.to_string(), next.to_string());
    let values = [
        ("Event", &**name),
        ("event", &*snake),
        ("upcast", &*upcast),
        ("downcast", &*downcast),
        ("from", &*from),
        ("to", &*to),
        ("payload", &*payload),
    ];
    let functions = fill(include_str!("../files/upcast.rs"), &values);
    let test = fill(include_str!("../files/upcast_test.rs"), &values);
    let (functions, test) = (functions.trim_end(), test.trim_end());
    let added = Version { upcast: &upcast, downcast: &downcast, functions, test };
    plan.edit(&file, |text| Source::new(text)?.with_version(&event, &added))?;
    let manifest = plan.read(&format!("{}/Cargo.toml", found.folder))?;
    // The crate may already have it as a dependency of tests.
    if !manifest.lines().any(|line| line.starts_with("serde_json")) {
        context::depend(plan, context, "serde_json")?;
    }
    Ok(Begun { number: next, file, lock })
}

/// Plans that a type of events writes its newest version.
pub(crate) fn write(plan: &mut Plan, context: &str, event: &str) -> Result<Begun> {
    check("the context", context)?;
    let found = context::existing(plan, context)?;
    let (file, event) = declared(plan, &found.folder, context, event)?;
    plan.edit(&file, |text| Source::new(text)?.without_write(&event))?;
    Ok(Begun { number: event.version, file, lock: format!("schemas/{context}.json") })
}

/// The file and the type of events of this name. It is the name in Rust or in the log.
fn declared(plan: &Plan, folder: &str, context: &str, name: &str) -> Result<(String, EventType)> {
    let mut all = Vec::new();
    for file in plan.sources(&format!("{folder}/src"))? {
        let text = plan.read(&file)?;
        let events = Source::new(&text).with_context(|| file.clone())?.events();
        all.extend(events.into_iter().map(|event| (file.clone(), event)));
    }
    let known: BTreeSet<_> = all.iter().map(|(_, event)| event.name.clone()).collect();
    let mut found = all.into_iter().filter(|(_, event)| event.name == name || event.stored == name);
    let Some((file, event)) = found.next() else {
        let known = known.iter().map(String::as_str).collect();
        bail!("the context {context} has no type of events {name}{}", near(name, &known));
    };
    if let Some((other, _)) = found.next() {
        bail!(
            "{file} and {other} have a type of events {name}: a command can't tell which is meant, so write the \
             version by hand, as docs/evolution.md shows"
        );
    }
    Ok((file, event))
}

/// The versions of a type in the lock, by their numbers.
fn locked(plan: &Plan, lock: &str, stored: &str) -> Result<BTreeMap<u32, Value>> {
    let text = if plan.has(lock) { plan.read(lock)? } else { "{}".to_owned() };
    ensure!(
        !text.lines().any(|line| line.starts_with("<<<<<<< ")),
        "{lock} has the marks of a merge that is not resolved: take the file of the branch that comes first, such as by \
         `git checkout origin/main -- {lock}`, and let `UPDATE=1 cargo test` write what is new"
    );
    let lock: Value = serde_json::from_str(&text).with_context(|| lock.to_owned())?;
    let versions = lock["events"][stored]["versions"].as_object().into_iter().flatten();
    versions.map(|(number, version)| Ok((number.parse()?, version.clone()))).collect()
}

/// A value as the macro `json!` takes it. `before` is the number of characters before it in its line. If the line is
/// too wide, the value continues in lines with this indentation.
fn literal(value: &Value, indent: usize, before: usize) -> String {
    let line = in_a_line(value);
    let is_short = before + line.len() <= LINE_CHARS_MAX;
    let within = indent + 4;
    let entry = |head: String, value| {
        let before = within + head.len();
        format!("{:within$}{head}{},\n", "", literal(value, within, before))
    };
    let (open, entries, close): (_, String, _) = match value {
        Value::Object(fields) if !is_short => {
            let entries = fields.iter().map(|(key, value)| entry(format!("{key:?}: "), value));
            ('{', entries.collect(), '}')
        }
        Value::Array(values) if !is_short => {
            ('[', values.iter().map(|value| entry(String::new(), value)).collect(), ']')
        }
        _ => return line,
    };
    format!("{open}\n{entries}{:indent$}{close}", "")
}

/// A value as the macro `json!` takes it, in one line.
fn in_a_line(value: &Value) -> String {
    let all = |values: Vec<String>| values.join(", ");
    match value {
        // A number without a type has 32 bits.
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) if i32::try_from(whole).is_ok() => number.to_string(),
            (Some(_), _) => format!("{number}_i64"),
            (None, Some(_)) => format!("{number}_u64"),
            (None, None) => number.to_string(),
        },
        Value::String(text) => format!("{text:?}"),
        Value::Array(values) => format!("[{}]", all(values.iter().map(in_a_line).collect())),
        Value::Object(fields) if !fields.is_empty() => {
            let field = |(key, value)| format!("{key:?}: {}", in_a_line(value));
            format!("{{ {} }}", all(fields.iter().map(field).collect()))
        }
        other => other.to_string(),
    }
}
