//! The findings of the gate in words: whom a change breaks, and the line to write.

use std::collections::BTreeMap;

use crate::finding::{Audience, Finding};
use crate::variations::A_SEALED_VALUE;
use crate::{DifferenceKind, Lock, LockedType, LockedVersion, Mismatch, ShapeDifference};

/// The section that describes how to declare boundaries for existing events.
const BOUNDARIES: &str = "docs/runbook.md#a-boundary-is-declared-for-events-that-exist";

/// A version of a type of events as the code has it.
pub(crate) struct Version<'a> {
    /// The type.
    pub(crate) name: &'a str,
    /// Its number, from 1 on.
    pub(crate) number: u32,
    /// The number of the newest one.
    pub(crate) newest: u32,
    /// The version itself.
    pub(crate) of: &'a LockedVersion,
}

pub(crate) fn finding(context: &str, subject: impl Into<String>, changes: Vec<String>) -> Finding {
    Finding {
        path: Lock::path(context),
        subject: subject.into(),
        changes,
        breaks: Vec::new(),
        remedy: Vec::new(),
        is_written: false,
    }
}

impl Finding {
    pub(crate) fn breaks(mut self, audience: Audience, how: impl Into<String>) -> Self {
        self.breaks.push((audience, how.into()));
        self
    }

    pub(crate) fn mend(mut self, line: impl Into<String>) -> Self {
        self.remedy.push(line.into());
        self
    }

    /// The steps when nobody relies on it any more.
    pub(crate) fn when_unused(self, what: &str) -> Self {
        self.mend(format!(
            "if it was never deployed, or nobody uses it any more: take {what} out of the file, and run \
             `UPDATE=1 cargo test`"
        ))
    }

    /// The steps if nobody relies on it yet.
    fn never_deployed(self, what: &str) -> Self {
        let path = self.path.clone();
        self.mend(format!(
            "if {what} was never deployed: give the file back what is deployed, such as by `git checkout origin/main -- \
             {path}`, or delete it if nothing is. Then run `UPDATE=1 cargo test`"
        ))
    }

    /// Marks it as not written, because of another finding about its type.
    pub(crate) fn withhold(&mut self) {
        if self.is_written {
            self.is_written = false;
            self.remedy.clear();
        }
    }
}

pub(crate) fn gone() -> Vec<String> {
    vec!["is gone".to_owned()]
}

/// Something that may be added.
pub(crate) fn grows(
    context: &str,
    subject: &str,
    changes: Vec<String>,
    notes: Vec<String>,
) -> Finding {
    Finding { is_written: true, remedy: notes, ..finding(context, subject, changes) }
}

/// The changes of a version that may grow, and notes on them.
pub(crate) fn growth(
    differences: &[ShapeDifference],
    is_public: bool,
) -> (Vec<String>, Vec<String>) {
    let mut notes = Vec::new();
    let is_gone = |of: &ShapeDifference| matches!(of.kind, DifferenceKind::Removed { .. });
    if differences.iter().any(|of| is_gone(of) && of.wants_readers_first()) {
        notes.push(
            "two deploys: with the first, no reader names it any more, and it is optional and still written; with the second it goes"
                .to_owned(),
        );
    }
    if differences.iter().any(|of| !is_gone(of) && of.wants_readers_first()) {
        notes.push(
            "readers first, in two deploys: functions that are not replaced yet can't read what is new. Deploy what reads \
             it, and then what writes it"
                .to_owned(),
        );
        if is_public {
            notes.push("consumers of the bus have to know it before it is written, too".to_owned());
        }
    }
    for of in differences {
        let is_added = matches!(of.kind, DifferenceKind::Added { .. });
        let is_it =
            |old: &&ShapeDifference| is_gone(old) && parent(&old.place) == parent(&of.place);
        if let Some(old) = differences.iter().find(is_it).filter(|_| is_added) {
            notes.push(format!(
                "if {} is {} under another name, what is stored is lost: take a new version, whose upcast renames it",
                of.place, old.place
            ));
        }
    }
    (differences.iter().map(ToString::to_string).collect(), notes)
}

fn parent(place: &str) -> &str {
    place.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// A type that the context does not declare any more.
pub(crate) fn type_gone(context: &str, name: &str) -> Finding {
    finding(context, format!("the type {name}"), gone())
        .breaks(
            Audience::Log,
            "its events stay there under this name, so a decision would overlook them, or fail",
        )
        .mend(format!(
            "declare it again: `#[event(retired)]`, and `.event::<{name}>()` in the context's list, if no slice writes \
             it; `#[event(stored_as = \"{name}\")]` if only its name in Rust has changed"
        ))
        .mend(format!(
            "a new name in the log is a new type beside it, and readers name both: `#[reads(also = \"{name}\")]`"
        ))
        .never_deployed("it")
}

/// A version with a lower number than was released.
pub(crate) fn version_gone(context: &str, name: &str, known: u32, newest: u32) -> Finding {
    let change = format!("the newest version is {newest}, and version {known} was released");
    finding(context, format!("the type {name}"), vec![change])
        .breaks(
            Audience::Log,
            format!(
                "nobody can read events of version {known}: commands answer 503, and views stop"
            ),
        )
        .mend(format!("write `#[event(version = {known})]` with its upcasts again"))
        .mend(format!(
            "to undo a version, write version {next}, whose upcast undoes it",
            next = known + 1
        ))
        .never_deployed(&format!("version {known}"))
}

/// An older version that the file does not have: a number was left out, or the file has lost it.
pub(crate) fn version_missing(context: &str, name: &str, missing: u32, newest: u32) -> Finding {
    let path = Lock::path(context);
    let change =
        format!("the newest version is {newest}, and version {missing} is not in the file");
    finding(context, format!("the type {name}"), vec![change])
        .breaks(
            Audience::Log,
            format!("nothing can show that events of version {missing} would be read"),
        )
        .mend(format!(
            "if version {missing} was in the file before, take it from the commit that had it: `git log -- {path}`"
        ))
        .mend(format!(
            "if version {missing} was never deployed, leave it out of the numbers: `#[event(version = {})]`, and \
             one upcast less",
            newest - 1
        ))
        .mend(format!(
            "otherwise go back to the commit with version {missing}, run `UPDATE=1 cargo test` there, and bring the file \
             here"
        ))
}

/// A change of how events of a type are filed.
pub(crate) fn boundaries(
    context: &str,
    name: &str,
    now: &LockedType,
    changes: Vec<String>,
) -> Finding {
    let filing = LockedType {
        versions: BTreeMap::new(),
        public: false,
        retired: false,
        write: None,
        ..now.clone()
    };
    let mut filing = serde_json::to_value(filing).unwrap_or_default();
    filing.as_object_mut().map(|filing| filing.remove("versions"));
    let filing = filing.to_string();
    let filing = filing.trim_start_matches('{').trim_end_matches('}');
    finding(context, format!("the type {name}"), changes)
        .breaks(
            Audience::Log,
            "events are filed when they are written, so decisions would overlook those that are stored. No version helps",
        )
        .mend("a field that is no boundary is `#[tag(skip)]`".to_owned())
        .mend(format!(
            "a boundary for events that exist: {BOUNDARIES}. Then write into the file, at {name}: {filing}"
        ))
        .mend("another partition or separator, or a tag that becomes blind: a new type, and this one `#[event(retired)]`")
        .never_deployed("the type")
}

/// A version whose payloads have another shape than the released ones.
pub(crate) fn version_broken(
    context: &str,
    version: &Version<'_>,
    is_public: bool,
    differences: &[ShapeDifference],
) -> Finding {
    let Version { name, number, newest, .. } = version;
    let changes = differences.iter().map(ToString::to_string).collect();
    let mut broken = finding(context, format!("{name} version {number}"), changes).breaks(
        Audience::Log,
        format!("events of version {number} are stored as they were, and stay so"),
    );
    if is_public {
        let how = "consumers outside of the stack read it, and tell versions apart by `schema`";
        broken = broken.breaks(Audience::Bus, how);
    }
    let is = |of: fn(&DifferenceKind) -> bool| differences.iter().any(|it| of(&it.kind));
    let is_personal = is(|kind| matches!(kind, DifferenceKind::Personal { is_now: true }));
    if is_personal {
        let how = "functions of the build before can't read sealed values; they wait for events of a newer version";
        broken = broken.breaks(Audience::Log, how);
    }
    if number < newest {
        let never = "the file is what was released: give it its text back".to_owned();
        return broken.mend(never);
    }
    let chain: Vec<_> = (1..=*number).map(|from| format!("{from} = …")).collect();
    let command = format!("`cargo new-version {context}/{name}`");
    broken = broken.mend(match is_personal {
        false => format!("take a new version: {command}, which writes"),
        // The older version can't hold a sealed value.
        true => format!(
            "take a new version in one deploy: {command}, and then the same with `--write`, which leave"
        ),
    });
    broken = broken.mend(format!("    #[event(version = {})]", number + 1));
    broken = broken.mend(format!("    #[upcast({})]", chain.join(", ")));
    if !is_personal {
        broken = broken.mend(format!("    #[write({number} = …)]"));
    }
    let lines = upcast(differences);
    if is_personal && lines.is_empty() {
        let nothing =
            "and the upcast changes nothing, because values in clear are read as they are";
        broken = broken.mend(nothing);
    } else if !lines.is_empty() {
        broken = broken.mend("and in the upcast");
    }
    for line in lines {
        broken = broken.mend(format!("    {line}"));
    }
    if is(|kind| matches!(kind, DifferenceKind::Added { is_optional: false })) {
        broken = broken
            .mend("or let what is new be absent: `Option<…>`, or `#[serde(default)]`")
            .mend(
                "if no value has a meaning for old events, write a new type, and this one is `#[event(retired)]`",
            );
    }
    for ShapeDifference { place, kind } in differences {
        broken = match kind {
            DifferenceKind::Renamed { .. } => broken.mend(format!(
                "if only the name in Rust has changed: `#[serde(rename = \"{}\")]`",
                last(place)
            )),
            DifferenceKind::Personal { is_now: false } => broken.mend(format!(
                "{place}: keep it personal, because an upcast can't open what is stored. A value in clear gets another name"
            )),
            DifferenceKind::Reformed { to, .. } => broken.mend(format!(
                "{place}: if {to} takes all that was taken before, write it into the file by hand"
            )),
            _ => broken,
        };
    }
    broken.never_deployed(&format!("version {number}"))
}

pub(crate) fn last(place: &str) -> &str {
    place.rsplit('/').next().unwrap_or_default()
}

/// The lines of an upcast over these differences.
fn upcast(differences: &[ShapeDifference]) -> Vec<String> {
    use DifferenceKind as Kind;
    let mut lines = Vec::new();
    let is_narrower = |place: &str| {
        let mut at_place = differences.iter().filter(|of| of.place == place);
        at_place.any(|of| matches!(of.kind, Kind::Narrowed(_)))
    };
    for ShapeDifference { place, kind } in differences {
        let field = place.split(['/', '[']).nth(1).unwrap_or_default();
        let convert = format!("data.convert({field:?}, |old: …| Ok(…))?;");
        // A deeper change is converted with the whole field.
        let is_field = *place == format!("/{field}");
        let line = match kind {
            Kind::Added { is_optional: true }
            | Kind::MadeOptional
            | Kind::Widened(_)
            | Kind::Personal { .. } => continue,
            _ if field.is_empty() => "…".to_owned(),
            _ if !is_field => convert,
            // An absent option is the same as null.
            Kind::MadeRequired if is_narrower(place) => {
                format!("data.default({field:?}, serde_json::Value::Null)?;")
            }
            Kind::Added { .. } | Kind::MadeRequired => format!("data.default({field:?}, …)?;"),
            Kind::Renamed { to } => format!("data.rename({field:?}, {to:?})?;"),
            Kind::Removed { was_optional: false } => {
                format!("let _: serde_json::Value = data.remove({field:?})?;")
            }
            Kind::Removed { .. } => {
                format!("let _: Option<serde_json::Value> = data.remove({field:?}).ok();")
            }
            Kind::Replaced { .. } | Kind::Reformed { .. } | Kind::Narrowed(_) => convert,
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// A sample that does not have the shape of its version.
pub(crate) fn sample_wrong(
    context: &str,
    (name, number): (&str, u32),
    sample: usize,
    why: &Mismatch,
) -> Finding {
    let change = format!("sample {sample} does not have the shape beside it: {why}");
    finding(context, format!("{name} version {number}"), vec![change])
        .mend("if the file was changed by hand, give it back the text of the last commit")
        .mend("if the sample is of a case, the type writes what it does not read")
}

/// A reader that can't read a sample.
pub(crate) fn unread(
    context: &str,
    (name, number): (&str, u32),
    (reader, audience): (&str, Audience),
    sample: &str,
    why: &str,
) -> Finding {
    let (kind, how) = match audience {
        Audience::Bus => ("reactor", "it fails on such an event, which becomes a letter"),
        Audience::Rows => ("view", "it parks such an event"),
        Audience::Log | Audience::Http => ("slice", "a decision that meets such an event fails"),
    };
    let change = format!("the {kind} {reader} can't read sample {sample}: {why}");
    let found = finding(context, format!("{name} version {number}"), vec![change]);
    let is_personal = sample.contains(A_SEALED_VALUE);
    let found = found.breaks(audience, how).mend(match (is_personal, audience) {
        (true, Audience::Rows) => format!("let {reader} take it as `Sealed<…>`"),
        (true, _) => format!("let {reader} take it as `Personal<…>`, or a due as `Sealed<…>`"),
        (false, _) => format!(
            "let {reader} take it, for example by `Option<…>` or `#[serde(default)]` if a field may be absent; or give the \
             value by an upcast"
        ),
    });
    match audience {
        Audience::Bus => {
            found.mend("a cause with upcasts of its own needs those of the type: `Cause::of`")
        }
        Audience::Log | Audience::Http | Audience::Rows => found,
    }
}
