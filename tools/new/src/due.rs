//! Adds a slice whose command is sent at a time after an event: its file, and its lines in the list. Everything else is
//! the same as for other slices.

use std::str::FromStr;

use anyhow::{Context, Result, ensure};

use crate::context::{Found, Log};
use crate::declared::declared;
use crate::edit::{append, names};
use crate::names::Deed;
use crate::plan::{Plan, fill};
use crate::source::EventField;

/// The text before the time in the file of such a slice.
const AFTER: &str = "const AFTER_MS: u64 = ";

/// A time after an event, such as 15m.
#[derive(Clone, Debug)]
pub(crate) struct After {
    text: String,
    /// The milliseconds, as a person writes them in Rust.
    ms: String,
}

impl FromStr for After {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not a time: give a number and s, m, h or d, such as 15m");
        let (number, unit) =
            text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
        let number: u32 = number.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)?;
        let (name, ms) = match unit {
            "s" => ("second", "1_000"),
            "m" => ("minute", "60 * 1_000"),
            "h" => ("hour", "3_600 * 1_000"),
            "d" => ("day", "24 * 3_600 * 1_000"),
            _ => return Err(wrong()),
        };
        let plural = if number == 1 { "" } else { "s" };
        let text = format!("{number} {name}{plural}");
        let ms = if number == 1 { ms.to_owned() } else { format!("{number} * {ms}") };
        Ok(Self { text, ms })
    }
}

/// The event of the slice's own context after which the command is sent, and the time between them.
pub(crate) struct Begin {
    after: After,
    event_type: String,
    /// The field of the event that names the thing of the command, and its type.
    pub(crate) id: String,
    pub(crate) id_type: String,
    /// The fields of an event in a case.
    fields: String,
    /// The attribute of the id if the payload does not have it.
    mark: &'static str,
}

impl Begin {
    /// `of` is `<context>/<Type>`.
    pub(crate) fn of(plan: &Plan, context: &str, after: After, of: &str) -> Result<Self> {
        let event = declared(plan, of, "--of")?;
        ensure!(
            event.context == context && event.log != Log::Document,
            "--of {of}: write this one by hand, as docs/deadlines.md of Ringfence shows: the command writes slices that \
             follow an event of their own context, on the DCB log or the aggregate log"
        );
        let id = event.id.with_context(|| {
            format!("--of {of}: the event has no field that ends in _id, which would name what the command is about")
        })?;
        let field = event.fields.iter().find(|field| field.name == id);
        let id_type = field.map(|field| field.of.clone());
        let id_type = id_type.filter(|_| event.is_partition).with_context(|| {
            format!("--of {of}: {id} is not the event's partition alone, so write this one by hand")
        })?;
        let fields = values(&event.fields, &id);
        let mark = if event.in_payload { "" } else { "#[stream]" };
        Ok(Self { after, event_type: event.event_type, id, id_type, fields, mark })
    }

    /// Fails if the existing slice, in a file with this text, is due after another time. A person may have replaced the
    /// time by any other code.
    pub(crate) fn check_there(&self, text: &str, file: &str) -> Result<()> {
        let found = text.split_once(AFTER).and_then(|(_, rest)| rest.split_once(';'));
        let Self { after: After { ms, .. }, .. } = self;
        ensure!(
            found.is_none_or(|(found, _)| found == ms),
            "{file} is there with another time, which stays: to change it, write `{AFTER}{ms};` there. Rows that are \
             there get the new time by `ringfence replay view`"
        );
        Ok(())
    }

    /// Plans the slice's own file and its event.
    pub(crate) fn write_source(
        &self,
        plan: &mut Plan,
        found: &Found,
        deed: &Deed,
        values: &[(&str, &str)],
        file: &str,
    ) -> Result<()> {
        let events = format!("{}/src/events.rs", found.folder);
        ensure!(
            !names(&plan.read(&events)?, &deed.event),
            "{events} has {} already, which is the name that new-slice gives the slice's event: choose another name \
             for the slice",
            deed.event
        );
        let event = "\n#[derive(Clone, Debug, PartialEq, ringfence::Event)]\npub struct __Event__ {\n    \
                     #[tag(partition)]\n    pub __id__: __Id__,\n}\n";
        plan.edit(&events, |text| Ok(append(text, &fill(event, values))))?;
        let own = [
            ("after", &*self.after.text),
            ("ms", &*self.after.ms),
            ("Of", &*self.event_type),
            ("fields", &*self.fields),
        ];
        let mark = if self.mark.is_empty() { String::new() } else { format!("{}\n", self.mark) };
        // The mark has a separate line. Without a mark there is no line.
        let source = include_str!("../files/due.rs").replace("        __mark__\n", &mark);
        plan.create(file, &fill(&fill(&source, &own), values));
        Ok(())
    }
}

/// The fields of an event in a case.
pub(crate) fn values(fields: &[EventField], id: &str) -> String {
    let value =
        |field: &EventField| format!("{}: {}", field.name, value(&field.of, field.name == id));
    fields.iter().map(value).collect::<Vec<_>>().join(", ")
}

/// A value of a type for a case. Types that are made from texts accept `1`.
fn value(of: &str, is_id: bool) -> String {
    let is_number = |of: &str| of.starts_with(['u', 'i']) && of[1..].parse::<u8>().is_ok();
    match of {
        _ if is_id => "id(\"one\")".to_owned(),
        "String" => "\"some\".to_owned()".to_owned(),
        "bool" => "false".to_owned(),
        of if of.ends_with("MailAddress") => "id(\"ada@example.com\")".to_owned(),
        of if is_number(of) => "1".to_owned(),
        of if of.ends_with('>') && !of.starts_with("Text<") => "Default::default()".to_owned(),
        _ => "id(\"1\")".to_owned(),
    }
}

#[test]
fn a_time_is_read_and_fields_have_values() {
    let after: After = "15m".parse().unwrap();
    assert_eq!((&*after.text, &*after.ms), ("15 minutes", "15 * 60 * 1_000"));
    let after: After = "1d".parse().unwrap();
    assert_eq!((&*after.text, &*after.ms), ("1 day", "24 * 3_600 * 1_000"));
    for wrong in ["", "m", "0m", "15", "-1h", "1w", "1.5h"] {
        assert!(wrong.parse::<After>().unwrap_err().contains("such as 15m"), "{wrong}");
    }
    let values = ["RoomId", "BTreeMap<u8, Vec<Name>>", "u32", "String", "Text<9>", "MailAddress"]
        .map(|of| value(of, false));
    let expected = [
        "id(\"1\")",
        "Default::default()",
        "1",
        "\"some\".to_owned()",
        "id(\"1\")",
        "id(\"ada@example.com\")",
    ];
    assert_eq!(values, expected);
}
