//! The findings about folds whose results are stored.

use serde_json::Value;

use crate::finding::{Audience, Finding};
use crate::fold::Fold;
use crate::lock::{FoldKind, LockedFold};
use crate::words::finding;

/// The most characters of a state that are shown.
const SHOWN_MAX: usize = 400;

impl FoldKind {
    /// A fold of this kind and name.
    pub(crate) fn named(self, name: &str) -> String {
        match self {
            Self::State => format!("the kept state of {name}"),
            Self::Document => format!("the snapshot {name}"),
            Self::View => format!("the view {name}"),
            Self::Due => format!("the due {name}"),
        }
    }

    /// The audience that relies on its stored results, and how.
    fn breaks(self) -> (Audience, &'static str) {
        match self {
            Self::State | Self::Document => {
                (Audience::Log, "decisions go on from states that the old fold has stored")
            }
            Self::View => (Audience::Rows, "rows that are stored stay as the old fold made them"),
            Self::Due => {
                (Audience::Rows, "what is due stays as the old fold made it, and is sent so")
            }
        }
    }

    /// The place of its version in the code.
    fn constant(self, name: &str) -> String {
        match self {
            Self::State => "`.version(…)` in `SNAPSHOTS`".to_owned(),
            Self::Document => format!("`Snapshot::named({name:?}).version(…)` in `ACCESS`"),
            Self::View => "`const VERSION: u32` in `impl View`".to_owned(),
            Self::Due => "`const VERSION: u32` in `impl Due`".to_owned(),
        }
    }

    /// The effect of a higher version, or the steps that it needs.
    pub(crate) fn when_raised(self, name: &str) -> String {
        match self {
            Self::State => "handlers that start read all events once".to_owned(),
            Self::Document => "each document is folded from all its events once. If they were pruned, it goes on from what \
                               is stored"
                .to_owned(),
            Self::View | Self::Due => {
                format!("after the deploy, build the rows again: `ringfence replay view {name}`")
            }
        }
    }
}

/// A fold whose result for a history has changed, after the last event of these types.
pub(crate) fn changed(
    fold: &Fold,
    number: usize,
    types: &[&str],
    made: &Result<Value, String>,
) -> Finding {
    let Fold { context, kind, name, next_version, .. } = fold;
    let result = match made {
        Ok(made) => format!("has another result: {}", shown(&made.to_string())),
        Err(why) => format!("fails: {}", shown(why)),
    };
    let change = format!(
        "the version is the same as before, but the fold of {} (history {number}) {result}",
        types.join(", ")
    );
    let (audience, how) = kind.breaks();
    let changed = finding(context, kind.named(name), vec![change]).breaks(audience, how);
    if made.is_err() {
        return changed.mend("let the fold take what was released");
    }
    let changed = match fold.is_rolling {
        false => changed,
        true => changed.mend(
            "what is stored is in no event, so it is never folded again: let the code read it as it is",
        ),
    };
    changed
        .mend(format!("if the change is meant: {next_version}, then `UPDATE=1 cargo test`"))
        .mend("if it is not meant: give the fold back what it made")
}

/// The text up to a limit.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A fold that now reads types of events that it passed over before, or passes over types that it read.
pub(crate) fn reads(context: &str, (kind, name): (FoldKind, &str), types: &[String]) -> Finding {
    let change = format!(
        "the version is the same as before, but it begins or ceases to read {}",
        types.join(", ")
    );
    let (audience, how) = kind.breaks();
    finding(context, kind.named(name), vec![change])
        .breaks(audience, how)
        .mend(format!("raise {}, then `UPDATE=1 cargo test`", kind.constant(name)))
}

/// A fold whose version is smaller than before.
pub(crate) fn lowered(
    context: &str,
    (kind, name): (FoldKind, &str),
    was: &LockedFold,
    now: &LockedFold,
) -> Finding {
    let change = format!("its version is {}, and {} was released", now.version, was.version);
    let (audience, how) = kind.breaks();
    finding(context, kind.named(name), vec![change])
        .breaks(audience, how)
        .mend(format!("take a version above the one that was released: {}", kind.constant(name)))
}

/// A fold with another result for the same history each time.
pub(crate) fn by_chance(fold: &Fold, number: usize) -> Finding {
    let Fold { context, kind, name, .. } = fold;
    let change = format!("the fold of history {number} has another result each time");
    let (audience, how) = (kind.breaks().0, "nobody can tell whether the fold has changed");
    finding(context, kind.named(name), vec![change]).breaks(audience, how).mend(
        "let the fold be pure, and what is stored have an order: `BTreeMap` and `BTreeSet` instead of `HashMap` and `HashSet`",
    )
}
