//! A view for tests, whose events say which rows they touch and how large these become.

use ringfence_core::{Catalog, CatalogError, Event, NewEvent, Reads, id_type};
use ringfence_views::{Definition, View};
use serde_json::Value;

id_type!(NoteId, "names a note");

/// Something is noted in some rows.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct Noted {
    #[tag(partition)]
    pub(crate) note_id: NoteId,
    pub(crate) rows: Vec<String>,
    /// How large each row becomes, in bytes.
    pub(crate) bytes: usize,
}

/// Rows are wiped.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct Wiped {
    #[tag(partition)]
    pub(crate) note_id: NoteId,
    pub(crate) rows: Vec<String>,
}

pub(crate) fn catalog() -> Result<Catalog, CatalogError> {
    Catalog::new("notes", [Noted::SCHEMA, Wiped::SCHEMA])
}

#[derive(Reads)]
pub(crate) enum Consumed {
    Noted { note_id: NoteId, rows: Vec<String>, bytes: usize },
    Wiped { note_id: NoteId, rows: Vec<String> },
}

#[ringfence::value]
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) count: u64,
    pub(crate) text: String,
}

pub(crate) struct Notes;

impl View for Notes {
    const NAME: &'static str = "notes";
    type Reads = Consumed;
    type Row = Row;

    fn rows(event: &Consumed) -> Vec<String> {
        let (Consumed::Noted { rows, .. } | Consumed::Wiped { rows, .. }) = event;
        rows.clone()
    }

    fn evolve(row: Option<Row>, _id: &str, event: &Consumed) -> Option<Row> {
        match event {
            Consumed::Noted { bytes, .. } => {
                let count = row.unwrap_or_default().count + 1;
                Some(Row { count, text: "x".repeat(*bytes) })
            }
            Consumed::Wiped { .. } => None,
        }
    }
}

pub(crate) fn view() -> Definition {
    Definition::of::<Notes>()
}

/// The notes in so many shards.
pub(crate) fn spread(shards: u32) -> Definition {
    let mut view = view();
    view.shards = shards;
    view
}

fn strings(rows: &[&str]) -> Vec<String> {
    rows.iter().map(|row| (*row).to_owned()).collect()
}

pub(crate) fn noted(note: &str, rows: &[&str]) -> NewEvent {
    sized(note, strings(rows), 0)
}

pub(crate) fn sized(note: &str, rows: Vec<String>, bytes: usize) -> NewEvent {
    Noted { note_id: ringfence_core::kit::id(note), rows, bytes }.into()
}

pub(crate) fn wiped(note: &str, rows: &[&str]) -> NewEvent {
    Wiped { note_id: ringfence_core::kit::id(note), rows: strings(rows) }.into()
}

/// An event of the row `a` whose payload does not have the shape of its type.
pub(crate) fn poison(note: &str) -> NewEvent {
    let mut event = noted(note, &[]);
    event.data = serde_json::json!({ "noteId": note, "rows": "a", "bytes": 0 });
    event
}

#[derive(Reads)]
pub(crate) enum Any {
    Noted { rows: Value, bytes: usize },
    Wiped { rows: Vec<String> },
}

/// The notes, which can read the poison too.
pub(crate) struct Lenient;

impl View for Lenient {
    const NAME: &'static str = "notes";
    type Reads = Any;
    type Row = Row;

    fn rows(event: &Any) -> Vec<String> {
        Notes::rows(&Consumed::from(event))
    }

    fn evolve(row: Option<Row>, id: &str, event: &Any) -> Option<Row> {
        Notes::evolve(row, id, &Consumed::from(event))
    }
}

impl From<&Any> for Consumed {
    fn from(event: &Any) -> Self {
        let note_id = ringfence_core::kit::id("n1");
        match event {
            Any::Noted { rows, bytes } => {
                let rows = serde_json::from_value(rows.clone()).unwrap_or(vec!["a".to_owned()]);
                Self::Noted { note_id, rows, bytes: *bytes }
            }
            Any::Wiped { rows } => Self::Wiped { note_id, rows: rows.clone() },
        }
    }
}
