//! The views: one of all events, and one for each type, with columns that follow from the shape of its payload.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{self, PathBuf};

use anyhow::{Context, Result};
use ringfence_schemas::{LockedType, Shape};
use serde_json::{Value, json};

use crate::Lists;
use crate::export::subject::Form;

/// The columns of a file, with their types.
const COLUMNS: [(&str, &str); 13] = [
    ("checkpoint", "BIGINT"),
    ("id", "VARCHAR"),
    ("type", "VARCHAR"),
    ("context", "VARCHAR"),
    ("partition", "VARCHAR"),
    ("slot", "BIGINT"),
    ("recordedAt", "TIMESTAMP"),
    ("schema", "INTEGER"),
    ("storedSchema", "INTEGER"),
    ("streamId", "VARCHAR"),
    ("tags", "JSON"),
    ("data", "JSON"),
    ("meta", "JSON"),
];

/// The statements that make the views of the files of an export.
pub(super) fn of(files: &[PathBuf], form: Form, lists: &Lists) -> Result<String> {
    // Times with a zone are shown and compared in UTC, as `_at` is.
    let mut sql = format!("SET TimeZone = 'UTC';\n{}", all(files, form)?);
    let locks = (lists.locks)();
    let mut contexts: BTreeMap<&str, u32> = BTreeMap::new();
    for name in locks.values().flat_map(|lock| lock.events.keys()) {
        *contexts.entry(name).or_default() += 1;
    }
    for (context, lock) in &locks {
        for (name, locked) in &lock.events {
            // On logs of streams, two contexts may have types of one name.
            let view =
                if contexts[&**name] > 1 { format!("{context}_{name}") } else { name.clone() };
            sql.push_str(&of_type(&view, context, name, locked, lists));
        }
    }
    Ok(sql)
}

/// The view of all events.
fn all(files: &[PathBuf], form: Form) -> Result<String> {
    let files = files.iter().map(|file| {
        let path = path::absolute(file)?;
        let path = path.to_str();
        Ok(text(path.with_context(|| format!("{} is not UTF-8: move the folder", file.display()))?))
    });
    let files = files.collect::<Result<Vec<_>>>()?.join(", ");
    let source = match form {
        Form::Parquet => format!("read_parquet([{files}], union_by_name = true)"),
        Form::Jsonl => {
            let columns = COLUMNS.map(|(column, of)| format!("{}: {}", name(column), text(of)));
            format!(
                "read_json([{files}], format = 'newline_delimited', columns = {{{}}})",
                columns.join(", ")
            )
        }
    };
    let columns = COLUMNS.map(|(column, of)| match column {
        "schema" => format!("CAST(coalesce({}, 1) AS INTEGER) AS {}", name(column), name(column)),
        _ => format!("CAST({} AS {of}) AS {}", name(column), name(column)),
    });
    Ok(format!("CREATE VIEW events AS SELECT {} FROM {source};\n", columns.join(", ")))
}

/// The view of a type, in its newest version.
fn of_type(
    view: &str,
    context: &str,
    event_type: &str,
    locked: &LockedType,
    lists: &Lists,
) -> String {
    let mut columns = String::new();
    for (column, of) in [
        ("_id", "id"),
        ("_at", "\"recordedAt\""),
        ("_partition", "\"partition\""),
        ("_slot", "slot"),
        ("_version", "coalesce(\"storedSchema\", schema)"),
        ("_principal", "meta->>'$.principal'"),
        ("_data", "data"),
        ("_meta", "meta"),
    ] {
        write!(columns, ", {of} AS {column}").expect("a text takes it");
    }
    let catalog = lists.catalog(context, event_type);
    let schema = catalog.and_then(|catalog| catalog.schema(event_type));
    let in_stream: Vec<&str> = schema.into_iter().flat_map(|schema| schema.of_stream()).collect();
    let shape = locked.versions.last_key_value().map(|(_, version)| &version.shape);
    let mut structure = json!({});
    if let Some(Shape::Object(members)) = shape {
        for (field, member) in members {
            let of = structure_of(&member.shape);
            // A payload on a log of streams does not repeat the id of its stream.
            let column = match in_stream.contains(&&**field) && of == json!("VARCHAR") {
                true => format!("coalesce(p.{}, \"streamId\")", name(field)),
                false => format!("p.{}", name(field)),
            };
            write!(columns, ", {column} AS {}", name(field)).expect("a text takes it");
            structure[field] = of;
        }
    }
    let payload = match structure.as_object().is_some_and(|fields| fields.is_empty()) {
        true => "NULL".to_owned(),
        false => format!("from_json(data, {})", text(&structure.to_string())),
    };
    format!(
        "CREATE VIEW {} AS SELECT {} FROM (SELECT *, {payload} AS p FROM events WHERE context = {} AND type = {});\n",
        name(view),
        &columns[2..],
        text(context),
        text(event_type)
    )
}

/// The type in DuckDB's notation for a value of this shape: a name, a list, or the types of members.
fn structure_of(shape: &Shape) -> Value {
    match shape {
        Shape::Boolean => json!("BOOLEAN"),
        // A query can compute numbers below zero from it, such as a refund.
        Shape::Integer { .. } => json!("BIGINT"),
        Shape::Number { .. } => json!("DOUBLE"),
        Shape::String { format, .. } => match format.as_deref() {
            // TIMESTAMP would ignore the offset of a time.
            Some("date-time") => json!("TIMESTAMPTZ"),
            Some("date") => json!("DATE"),
            Some(_) | None => json!("VARCHAR"),
        },
        Shape::Choice(_) => json!("VARCHAR"),
        Shape::List { item, .. } => json!([structure_of(item)]),
        Shape::Object(members) if !members.is_empty() => {
            let member = |(name, member): (&String, &ringfence_schemas::Member)| {
                (name.clone(), structure_of(&member.shape))
            };
            Value::Object(members.iter().map(member).collect())
        }
        Shape::Nullable(shape) => structure_of(shape),
        Shape::Any
        | Shape::Null
        | Shape::Tuple(_)
        | Shape::Map { .. }
        | Shape::Object(_)
        | Shape::OneOf { .. }
        | Shape::AnyOf(_)
        | Shape::Personal(_) => {
            json!("JSON")
        }
    }
}

/// A name in SQL.
fn name(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A text in SQL.
fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ringfence_schemas::Member;

    use super::*;

    #[test]
    fn a_shape_has_the_type_that_holds_all_of_its_values() {
        let whole = |min, max| Shape::Integer { min, max };
        let member = |shape| Member { is_optional: false, shape };
        let money = BTreeMap::from([
            ("amount".to_owned(), member(whole(0, u64::MAX.into()))),
            ("by".to_owned(), member(Shape::Nullable(Box::new(whole(-5, 5))))),
        ]);
        let list = Shape::List { item: Box::new(Shape::Object(money)), min: 0, max: None };
        assert_eq!(structure_of(&list), json!([{ "amount": "BIGINT", "by": "BIGINT" }]));
        let text = |format: &str| Shape::String {
            min: 0,
            max: None,
            pattern: None,
            format: Some(format.to_owned()),
        };
        let formats = ["date-time", "date", "uuid"].map(|format| structure_of(&text(format)));
        assert_eq!(formats, ["TIMESTAMPTZ", "DATE", "VARCHAR"]);
        let map = Shape::Map { keys: None, value: Box::new(Shape::Boolean), min: 0, max: None };
        assert_eq!(structure_of(&map), json!("JSON"));
        assert_eq!(structure_of(&Shape::Object(BTreeMap::new())), json!("JSON"));
    }

    #[test]
    fn names_and_texts_can_hold_quotes() {
        assert_eq!((name("a\"b"), text("it's")), ("\"a\"\"b\"".to_owned(), "'it''s'".to_owned()));
    }
}
