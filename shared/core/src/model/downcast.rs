//! Writes an older version of a type than the newest one.
//!
//! The first release that reads a version still writes the one before. So the program before it knows all its events,
//! and a roll-back meets nothing that it can't read. The next release writes the version.

use std::iter::zip;

use serde_json::Value;

use super::upcast::{WrittenVersion, fields};
use crate::{EventSchema, Name};

impl EventSchema {
    /// The version in which new events are stored.
    #[must_use]
    pub fn written(&self) -> u32 {
        self.write.map_or(self.upcasts.version(), |write| write.number)
    }

    /// The payload of a new event as a log stores it, and its version.
    ///
    /// # Errors
    /// The type writes an older version, which can't hold this payload: upcasts of the result would make another one.
    pub fn stored(&self, data: Value) -> Result<(u32, Value), DowncastError> {
        let Some(WrittenVersion { number, downcast }) = self.write else {
            return Ok((self.upcasts.version(), data));
        };
        let older = fields(data.clone()).and_then(downcast).map_err(|why| self.failed(why))?;
        let older = Value::Object(older.0);
        let again = self.newest(older.clone())?;
        if let Some(field) = other_field(&data, &[&again]) {
            return Err(self.failed(format_args!(
                "field `{field}` is lost. Readers skip fields that they do not know: let the downcast leave its value \
                 in the payload, and the upcast take it from there"
            )));
        }
        // Upcasts may pass on what the older version has, and make nothing else.
        match other_field(&again, &[&older, &data]) {
            None => Ok((number, older)),
            Some(field) => Err(self.failed(format_args!(
                "the upcasts make a field `{field}`, which the event does not have: let the downcast set it to null"
            ))),
        }
    }

    /// Checks that a payload of the written version means the same to its readers after an upcast and the downcast.
    /// They skip fields that are not known.
    ///
    /// # Errors
    /// It means something else.
    pub fn check_downcast(
        &self,
        older: &Value,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<(), DowncastError> {
        if self.write.is_none() {
            return Ok(());
        }
        let newest = self.newest(older.clone())?;
        let (_, mut again) = self.stored(newest.clone())?;
        if let Value::Object(fields) = &mut again {
            fields.retain(|name, _| is_known(name));
        }
        // A field that the newest version does not have may have any value.
        match other_field(&newest, &[&self.newest(again)?]) {
            None => Ok(()),
            Some(field) => Err(self.failed(format_args!(
                "after an upcast and the downcast, readers of version {} see another `{field}`",
                self.written()
            ))),
        }
    }

    /// Upcasts a payload of the written version.
    fn newest(&self, older: Value) -> Result<Value, DowncastError> {
        let newest = self.upcasts.apply(&self.name, self.written(), older);
        newest.map_err(|error| self.failed(error))
    }

    fn failed(&self, why: impl ToString) -> DowncastError {
        let (event_type, why) = (self.name.clone(), why.to_string());
        DowncastError { event_type, version: self.written(), why }
    }
}

/// The first field of a payload that has another value in each of the others. A missing field is the same as null.
fn other_field<'a>(payload: &'a Value, others: &[&Value]) -> Option<&'a str> {
    let differs = |(name, value): &(&String, &Value)| {
        others.iter().all(|other| !is_same(value, &other[name.as_str()]))
    };
    Some(payload.as_object()?.iter().find(differs)?.0)
}

fn is_same(first: &Value, second: &Value) -> bool {
    match (first, second) {
        (Value::Array(first), Value::Array(second)) => {
            first.len() == second.len() && zip(first, second).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(first), Value::Object(second)) => {
            let is_in_second = |(key, a)| second.get(key).is_some_and(|b| is_same(a, b));
            first.len() == second.len() && first.iter().all(is_in_second)
        }
        // An upcast may write 4.0 as 4.
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            a.as_f64() == b.as_f64()
        }
        _ => first == second,
    }
}

/// A new event that can't be stored in the older version that its type still writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event_type} can't be written as version {version}: {why}")]
pub struct DowncastError {
    /// The type.
    pub event_type: Name,
    /// The version that it writes.
    pub version: u32,
    /// The reason, and the way out.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{FieldError, Fields, Upcast, Upcasts};

    /// Version 1 has a price in euros and a note. Version 2 has cents and a payer.
    fn schema(downcast: Upcast) -> EventSchema {
        EventSchema {
            name: "Paid".into(),
            tags: vec![].into(),
            separator: '/',
            read_as_composite: false,
            read_by_type: false,
            fenced: false,
            copies: 0,
            upcasts: Upcasts(&[upcast]),
            write: Some(WrittenVersion { number: 1, downcast }),
            retired: false,
            subjects: crate::Subjects::NONE,
        }
    }

    fn upcast(mut data: Fields) -> Result<Fields, FieldError> {
        let euros: f64 = data.remove("price")?;
        let _ = data.remove::<Value>("note");
        data.default("cents", euros * 100.0)?;
        data.default("payer", "nobody")?;
        Ok(data)
    }

    /// It keeps the new fields beside the older ones.
    fn beside(data: Fields) -> Result<Fields, FieldError> {
        let mut older = whole(data.clone())?;
        older.0.extend(data.0);
        Ok(older)
    }

    /// It has only the older fields.
    fn whole(mut data: Fields) -> Result<Fields, FieldError> {
        let _ = data.remove::<Value>("payer");
        data.convert("cents", |cents: f64| Ok((cents / 100.0).floor()))?;
        data.rename("cents", "price")?;
        data.default("note", "none")?;
        Ok(data)
    }

    #[test]
    fn a_payload_is_stored_in_the_older_version_only_if_nothing_of_it_is_lost() {
        let stored = |downcast, data| schema(downcast).stored(data).map_err(|it| it.why);
        let data = |cents: u64, payer| json!({ "cents": cents, "payer": payer, "tip": null });
        let mut kept = data(450, "Ada");
        assert_eq!(
            stored(whole, data(450, "nobody")).unwrap_err().split(". ").next(),
            Some("field `cents` is lost")
        );
        assert_eq!(
            stored(whole, data(400, "Ada")).unwrap_err().split(". ").next(),
            Some("field `payer` is lost")
        );
        let older = json!({ "price": 4.0, "tip": null, "note": "none" });
        assert_eq!(stored(whole, data(400, "nobody")), Ok((1, older.clone())));
        kept.as_object_mut().unwrap().extend(older.as_object().unwrap().clone());
        assert_eq!(stored(beside, data(450, "Ada")), Ok((1, kept)));
        // A payer that the event does not have would have a name after the upcast.
        let why = "the upcasts make a field `payer`, which the event does not have: let the downcast set it to null";
        assert_eq!(stored(whole, json!({ "cents": 400 })), Err(why.to_owned()));
        let fails = stored(whole, json!({ "payer": "Ada" }));
        assert_eq!(fails, Err("field `cents` is missing".to_owned()));
        let fails = stored(Ok, data(400, "Ada")).unwrap_err();
        assert_eq!(fails, "Paid can't be upcast from version 1 to 2: field `price` is missing");
        let [lines, again] = [json!([{ "net": 4.0 }]), json!([{ "net": 4 }])];
        assert!(is_same(&lines, &again) && !is_same(&lines, &json!([{ "net": 4, "tax": 1 }])));
    }

    #[test]
    fn a_downcast_gives_readers_of_the_older_version_the_same_values() {
        let check = |downcast| {
            let older = json!({ "price": 4, "note": "late" });
            let known = |field: &str| older.get(field).is_some();
            schema(downcast).check_downcast(&older, known).map_err(|it| it.why)
        };
        // The newest version has no note, so the note may differ.
        assert_eq!((check(whole), check(beside)), (Ok(()), Ok(())));
        // The upcast takes the cents, but readers of version 1 take this price.
        let wrong = check(|data| {
            let mut older = beside(data)?;
            older.set("price", 400)?;
            Ok(older)
        });
        let why = "after an upcast and the downcast, readers of version 1 see another `cents`";
        assert_eq!(wrong, Err(why.to_owned()));
    }
}
