//! The findings about released names: of commands, codes of rejections, views, reactors, dues and snapshots.

use crate::finding::{Audience, Finding};
use crate::lock::FoldKind;
use crate::words::{finding, gone, last};
use crate::{DifferenceKind, ShapeDifference};

/// A command that takes less than before.
pub(crate) fn command_broken(
    context: &str,
    slice: &str,
    differences: &[ShapeDifference],
) -> Finding {
    let changes = differences.iter().map(ToString::to_string).collect();
    let mut broken = finding(context, format!("the command {slice}"), changes).breaks(
        Audience::Http,
        format!("POST /{context}/{slice} answers 400 to what callers send today"),
    );
    for ShapeDifference { place, kind } in differences {
        let name = last(place);
        let line = match kind {
            DifferenceKind::Added { is_optional: false } | DifferenceKind::MadeRequired => {
                format!("{place}: `Option<…>`, or `#[serde(default)]`")
            }
            DifferenceKind::Renamed { to } => {
                format!("{place}: `#[serde(rename = {name:?})]` on `{to}`")
            }
            DifferenceKind::Removed { .. } => format!("{place}: keep it, as `Option<…>`"),
            DifferenceKind::Replaced { .. } | DifferenceKind::Narrowed(_) => {
                format!("{place}: take what was taken, and reject it in `decide` if it must not be")
            }
            DifferenceKind::Reformed { to, .. } => format!(
                "{place}: if {to} takes all that was taken before, write it into the file by hand. Otherwise take what was \
                 taken, and reject it in `decide` if it must not be"
            ),
            DifferenceKind::Added { .. }
            | DifferenceKind::MadeOptional
            | DifferenceKind::Widened(_)
            | DifferenceKind::Personal { .. } => continue,
        };
        broken = broken.mend(line);
    }
    broken.mend(format!(
        "another command is another slice: `cargo new-slice {context}/…`, beside this one until nobody calls it"
    ))
    .when_unused(&format!("`{slice}` from `commands`"))
}

/// A code that no rejection of a command has any more.
pub(crate) fn code_gone(context: &str, slice: &str, code: &str) -> Finding {
    let change = format!("no case is rejected with the code {code} any more");
    finding(context, format!("the command {slice}"), vec![change])
        .breaks(
            Audience::Http,
            "callers tell rejections apart by their codes, and a repeat under an idempotency key still gets this one",
        )
        .mend("give the code back, and a case that shows it")
        .when_unused(&format!("the code from `rejections` of `{slice}`"))
}

/// A command that no slice takes any more.
pub(crate) fn command_gone(context: &str, slice: &str) -> Finding {
    finding(context, format!("the command {slice}"), gone())
        .breaks(Audience::Http, format!("POST /{context}/{slice} answers 404"))
        .mend("list its slice again. A new name is a slice beside it, until nobody calls this one")
        .when_unused(&format!("`{slice}` from `commands`"))
}

impl FoldKind {
    /// A fold of this name that is gone, if somebody relies on it.
    pub(crate) fn gone(self, context: &str, name: &str) -> Option<Finding> {
        match self {
            // Nobody reads what it has kept. If the state comes back, it must be the same as before.
            Self::State => None,
            Self::Document => Some(snapshot_gone(context, name)),
            Self::View => Some(view_gone(context, name)),
            Self::Due => Some(due_gone(context, name)),
        }
    }
}

/// A view that is not listed any more.
fn view_gone(context: &str, view: &str) -> Finding {
    finding(context, format!("the view {view}"), gone())
        .breaks(Audience::Http, format!("GET /{view} and GET /{view}/… answer 404"))
        .breaks(Audience::Rows, "its rows stay in the table, and nobody changes them")
        .mend("list it again. A new name is a view beside it, which is folded from the first event")
        .when_unused(&format!("`{view}` from `views`"))
}

/// A slice that does not react any more.
pub(crate) fn reactor_gone(context: &str, slice: &str) -> Finding {
    finding(context, format!("the reactor {slice}"), gone())
        .breaks(
            Audience::Bus,
            "the keys of its reactions have its name: under another one, a replay or a letter has its effect again",
        )
        .mend(format!("let {slice} react again, under this name"))
        .when_unused(&format!("`{slice}` from `reactors`"))
}

/// A slice whose command is not sent at a time any more.
fn due_gone(context: &str, slice: &str) -> Finding {
    finding(context, format!("the due {slice}"), gone())
        .breaks(
            Audience::Rows,
            "what is due stays in the table under this name, and nobody sends it. Under another name the times are folded \
             again from the first event, and the keys of their commands are others",
        )
        .mend(format!("list it again: `.due::<…>()` of {slice}"))
        .when_unused(&format!("`{slice}` from `dues`"))
}

/// A snapshot that documents may have.
fn snapshot_gone(context: &str, name: &str) -> Finding {
    finding(context, format!("the snapshot {name}"), gone())
        .breaks(
            Audience::Rows,
            "documents that have it are folded from their events, and `prune` may have deleted these",
        )
        .mend("give the name back if documents were pruned")
        .when_unused(&format!("`{name}` from `snapshots`"))
}
