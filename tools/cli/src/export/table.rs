//! A segment as a Parquet file. Payload, tags and metadata are columns of JSON, because the types of events have
//! nothing in common. `ringfence sql` makes a view with typed columns for each type.

use std::sync::Arc;

use anyhow::Result;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use ringfence_core::SequencedEvent;
use ringfence_feed::Checkpoint;
use serde::Serialize;

use super::folder::Hashed;
use crate::shown::ShownEvent;

/// The text columns, and whether each may be empty.
const TEXTS: [(&str, bool); 8] = [
    ("id", false),
    ("type", false),
    ("context", false),
    ("partition", false),
    ("streamId", true),
    ("tags", false),
    ("data", false),
    ("meta", false),
];

/// The events of a segment, column by column.
#[derive(Default)]
pub(super) struct Rows {
    texts: [Vec<ByteArray>; TEXTS.len()],
    /// For the optional text: whether each row has one.
    has_stream: Vec<i16>,
    checkpoints: Vec<i64>,
    slots: Vec<i64>,
    times: Vec<i64>,
    versions: Vec<i32>,
    /// The stored versions of payloads that were upcast.
    stored: Vec<i32>,
    /// For the stored version: whether each row has one.
    has_stored: Vec<i16>,
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it is JSON")
}

impl Rows {
    pub(super) fn add(
        &mut self,
        checkpoint: Checkpoint,
        ShownEvent { event, stored }: &ShownEvent,
    ) {
        let SequencedEvent { event_type, context, partition, tags, data, metadata, .. } = event;
        let stream = event.stream_id();
        self.has_stream.push(i16::from(stream.is_some()));
        let texts = [
            Some(event.id()),
            Some(event_type.clone()),
            Some(context.clone()),
            Some(partition.to_string()),
            stream,
            Some(json(tags)),
            Some(json(data)),
            Some(json(metadata)),
        ];
        for (column, text) in self.texts.iter_mut().zip(texts) {
            column.extend(text.map(|text| ByteArray::from(text.into_bytes())));
        }
        self.checkpoints.push(i64::from(checkpoint));
        self.slots.push(signed(event.slot));
        self.times.push(signed(event.at));
        let version = |version: u32| i32::try_from(version).unwrap_or(i32::MAX);
        self.versions.push(version(event.version));
        self.stored.extend(stored.map(version));
        self.has_stored.push(i16::from(stored.is_some()));
    }

    /// Writes the file.
    pub(super) fn write(self, file: Hashed) -> Result<Hashed> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = SerializedFileWriter::new(file, schema()?, Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        let numbers = [&self.checkpoints, &self.slots, &self.times];
        for column in numbers {
            let mut writer = next(&mut group)?;
            writer.typed::<Int64Type>().write_batch(column, None, None)?;
            writer.close()?;
        }
        for (column, defined) in [(&self.versions, None), (&self.stored, Some(&*self.has_stored))] {
            let mut writer = next(&mut group)?;
            writer.typed::<Int32Type>().write_batch(column, defined, None)?;
            writer.close()?;
        }
        for (column, (_, optional)) in self.texts.iter().zip(TEXTS) {
            let mut writer = next(&mut group)?;
            let defined = optional.then_some(&*self.has_stream);
            writer.typed::<ByteArrayType>().write_batch(column, defined, None)?;
            writer.close()?;
        }
        group.close()?;
        Ok(writer.into_inner()?)
    }
}

/// The writer of the next column.
fn next<'g>(
    group: &'g mut SerializedRowGroupWriter<'_, Hashed>,
) -> Result<parquet::file::writer::SerializedColumnWriter<'g>> {
    Ok(group.next_column()?.expect("the schema has another column"))
}

/// The columns, in the order in which they are written.
fn schema() -> Result<TypePtr> {
    let column = |name, physical, logical, optional| {
        let repetition = if optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let column = Type::primitive_type_builder(name, physical);
        let column = column.with_repetition(repetition).with_logical_type(logical).build();
        column.map(Arc::new)
    };
    // In UTC. With a time zone, programs would show it in their own.
    let at = LogicalType::timestamp(false, TimeUnit::MILLIS);
    let mut columns = vec![
        column("checkpoint", Physical::INT64, None, false)?,
        column("slot", Physical::INT64, None, false)?,
        column("recordedAt", Physical::INT64, Some(at), false)?,
        column("schema", Physical::INT32, None, false)?,
        column("storedSchema", Physical::INT32, None, true)?,
    ];
    for (name, optional) in TEXTS {
        columns.push(column(name, Physical::BYTE_ARRAY, Some(LogicalType::String), optional)?);
    }
    Ok(Arc::new(Type::group_type_builder("event").with_fields(columns).build()?))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;
    use crate::export::folder::Written;
    use crate::export::form::OpenSegment;
    use crate::export::subject::{Form, Subject};
    use crate::line::event_of;

    #[test]
    fn a_file_has_the_columns_of_the_lines() {
        let event = |partition: &str, version: u32| {
            let line = serde_json::json!({
                "id": format!("{partition}/3"),
                "slot": 3,
                "recordedAt": "2024-06-23T00:00:00.120Z",
                "type": "Renamed",
                "context": "customers",
                "partition": partition,
                "tags": [],
                "data": { "name": "Ada" },
                "meta": { "principal": "eve" },
                "schema": version,
            });
            event_of(&line.to_string()).expect("an event")
        };
        let folder = tempfile::tempdir().expect("a folder");
        let subject = Subject::new(Form::Parquet, "index", Checkpoint::START, &[], true);
        let mut written = Written::open(folder.path(), subject, true).expect("a folder");
        let mut segment = OpenSegment::begin(&written).expect("a file");
        let at = |number: i64| Checkpoint::try_from(number).expect("a checkpoint");
        for (number, partition, stored) in
            [(7, "customers#a", None), (8, "orderId:o", None), (9, "customers#b", Some(1))]
        {
            let shown = ShownEvent { event: event(partition, 2), stored };
            segment.add(at(number), &shown).expect("a disk");
        }
        segment.end(&mut written, at(9)).expect("a disk");
        let [segment] = &written.folder.segments[..] else { panic!("there is one") };
        let file = File::open(written.folder.file(segment)).expect("a file");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        let rows = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row"));
        let rows: Vec<_> = rows.collect();
        assert_eq!((rows.len(), segment.events, &*segment.file), (3, 3, "000001.parquet"));
        let row = &rows[2];
        let long = |n| row.get_long(n).expect("a number");
        let int = |n| row.get_int(n).expect("a number");
        assert_eq!((long(0), long(1), int(3), int(4)), (9, 3, 2, 1));
        assert!(rows[1].get_int(4).is_err(), "it was not upcast");
        assert_eq!(row.get_timestamp_millis(2).expect("a time"), 1_719_100_800_120);
        let text = |n| row.get_string(n).expect("a text").as_str();
        let expected = [
            "customers#b/3",
            "Renamed",
            "customers",
            "customers#b",
            "b",
            "[]",
            r#"{"name":"Ada"}"#,
        ];
        assert_eq!([5, 6, 7, 8, 9, 10, 11].map(text), expected);
        assert!(rows[1].get_string(9).is_err(), "no stream has it");
    }
}
