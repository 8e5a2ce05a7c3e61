//! The report of an import: what it found and what it did.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use anyhow::{Error, Result, anyhow};
use ringfence_aws::Units;
use ringfence_core::SequencedEvent;
use ringfence_lambda::slice::plain;
use ringfence_schemas::Unreadable;
use serde_json::{Value, json};

use crate::Lists;
use crate::out::{serialize_as, write_line};
use crate::recorded::Imports;

/// What the source has, and what the import did with it.
#[derive(Default)]
pub(super) struct Report {
    /// How many events it has, without `gone`.
    pub(super) read: u64,
    /// By type and key: how many tags were left out because the type does not declare them.
    pub(super) left_out: BTreeMap<(String, String), u64>,
    /// How many events the source names that a prune has deleted.
    pub(super) gone: u64,
    /// The items that can't be imported, by cause. If there are any, nothing is written.
    pub(super) broken: BTreeMap<String, Vec<String>>,
    pub(super) imports: Imports,
    /// Units that the requests to the logs consumed, if they were counted.
    pub(super) units: Option<Units>,
}

impl Report {
    /// Notes that an item can't be imported.
    pub(super) fn refuse(&mut self, cause: &Error, item: String) {
        self.broken.entry(format!("{cause:#}")).or_default().push(item);
    }
}

/// Fails if a slice or view of this stack can't read the event.
pub(super) fn check_readers(event: &SequencedEvent, lists: &Lists) -> Result<()> {
    match lists.readers.unreadable(&lists.stack.catalogs, event).into_iter().next() {
        None => Ok(()),
        Some(Unreadable { reader, field, why, .. }) => {
            let field = field.as_deref();
            Err(unreadable(&format!("{reader} can't read {}", event.event_type), field, &why))
        }
    }
}

/// Why a payload can't be read: the field, and the values that it takes.
pub(super) fn unreadable(what: &str, field: Option<&str>, why: &serde_json::Error) -> Error {
    let why = why.to_string();
    // The text itself names a field that is missing.
    let field = field.filter(|_| !why.starts_with("missing field `"));
    match plain("", field.unwrap_or_default(), &why) {
        (field, message) if field.is_empty() => anyhow!("{what}: {message}"),
        (field, message) => anyhow!("{what}: data.{field}: {message}"),
    }
}

/// The end of an import.
pub(super) struct Done {
    pub(super) report: Report,
    pub(super) is_dry_run: bool,
}

impl Display for Done {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { report: Report { read, left_out, gone, broken, imports, units }, is_dry_run } =
            self;
        for ((event_type, tag), times) in left_out {
            write_line!(
                f,
                "left out  tag {tag}, which {event_type} does not declare: {times} times"
            )?;
        }
        if *gone > 0 {
            write_line!(f, "left out  {gone} events that their streams do not have any more")?;
        }
        for (cause, items) in broken {
            let more = match items.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            write_line!(f, "broken    {}{more}: {cause}", items[0])?;
        }
        let items: usize = broken.values().map(Vec::len).sum();
        if let Some(Units { read, write }) = units.filter(|units| *units != Units::default()) {
            write_line!(f, "units     {read} read, {write} write")?;
        }
        match (items, is_dry_run) {
            (0, false) => write_line!(f, "{imports}"),
            (0, true) => {
                let there = match imports.before {
                    0 => String::new(),
                    before => format!(", {before} are there"),
                };
                write_line!(f, "{} events can be imported{there}", read - imports.before)
            }
            (items, _) => {
                write_line!(f, "{items} events can't be imported, and nothing is written")
            }
        }
    }
}

serialize_as!(Done, |Done {
                         report: Report { read, left_out, gone, broken, imports, units },
                         ..
                     }| {
    let left_out = left_out.iter().map(
        |((event_type, tag), times)| json!({ "type": event_type, "tag": tag, "times": times }),
    );
    let broken = broken.iter().map(|(cause, items)| json!({ "cause": cause, "items": items }));
    let mut json = json!({
        "events": read,
        "imported": imports.imported,
        "before": imports.before,
        "leftOut": left_out.collect::<Value>(),
        "gone": gone,
        "broken": broken.collect::<Value>(),
    });
    if let Some(Units { read, write }) = units {
        json["later"] = imports.later.into();
        json["readUnits"] = json!(read);
        json["writeUnits"] = json!(write);
    }
    json
});
