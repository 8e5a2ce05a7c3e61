//! A segment as a Parquet file. Payload, tags and metadata are columns of JSON: the types of events have nothing in
//! common, and `ringfence sql` makes a view with typed columns for each.

use std::sync::Arc;

use anyhow::Result;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use ringfence::SequencedEvent;
use ringfence_feed::Entry;
use serde::Serialize;

use super::folder::Hashed;

/// The columns of texts.
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
    /// Of the optional text, whether each row has one.
    has_stream: Vec<i16>,
    checkpoints: Vec<i64>,
    slots: Vec<i64>,
    times: Vec<i64>,
    versions: Vec<i32>,
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it is JSON")
}

impl Rows {
    pub(super) fn add(&mut self, Entry { checkpoint, event }: &Entry) {
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
        self.checkpoints.push(i64::from(*checkpoint));
        self.slots.push(signed(event.slot));
        self.times.push(signed(event.at));
        self.versions.push(i32::try_from(event.version).unwrap_or(i32::MAX));
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
        let mut versions = next(&mut group)?;
        versions.typed::<Int32Type>().write_batch(&self.versions, None, None)?;
        versions.close()?;
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
    // In UTC. With the mark of a time zone, programs would show it in their own.
    let at = LogicalType::Timestamp { is_adjusted_to_u_t_c: false, unit: TimeUnit::MILLIS };
    let mut columns = vec![
        column("checkpoint", Physical::INT64, None, false)?,
        column("slot", Physical::INT64, None, false)?,
        column("recordedAt", Physical::INT64, Some(at), false)?,
        column("schema", Physical::INT32, None, false)?,
    ];
    for (name, optional) in TEXTS {
        columns.push(column(name, Physical::BYTE_ARRAY, Some(LogicalType::String), optional)?);
    }
    Ok(Arc::new(Type::group_type_builder("event").with_fields(columns).build()?))
}
