//! `ringfence import`. Each source has a file.

mod arguments;
mod castore_legacy;
mod checked;
mod jsonl;
mod logs;
mod propulsion_index;
mod report;
mod reventless;
mod there;

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Result, bail};
use ringfence_stack::Stack;

use crate::Lists;
pub(crate) use arguments::Arguments;
use arguments::Origin;
use report::Done;

/// An error names at most this many automations, dues and reactors.
const SHOWN: usize = 5;

pub(crate) async fn import(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    ensure_nothing_acts(arguments, &lists.stack)?;
    let report = match arguments.from {
        Origin::Jsonl => jsonl::import(arguments, lists).await?,
        Origin::Reventless => reventless::import(arguments, lists).await?,
        Origin::CastoreLegacy => castore_legacy::import(arguments, lists).await?,
        Origin::PropulsionIndex => propulsion_index::import(arguments, lists).await?,
    };
    let is_well = report.broken.is_empty();
    Ok(arguments.output.end(&Done { report, is_dry_run: arguments.dry_run }, is_well))
}

/// Fails if something could act on imported events. An automation would write into the places of later events, and the
/// import could not be completed.
fn ensure_nothing_acts(arguments: &Arguments, stack: &Stack) -> Result<()> {
    let Arguments { from, dry_run, rules_are_off, .. } = arguments;
    // An import of the index only orders events that are already there.
    let brings_events = !matches!(from, Origin::PropulsionIndex);
    let acting = acting(stack);
    if *dry_run || *rules_are_off || !brings_events || acting.is_empty() {
        return Ok(());
    }
    let more = match acting.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    bail!(
        "nothing is imported, because these could act on the events and take the places of later ones: {}{more}. Switch the \
         rules and the schedules of the stack off, as docs/data.md says, and add --rules-are-off. On this machine start the \
         stack with `cargo local --no-rules`, and read its variables again",
        acting.into_iter().take(SHOWN).collect::<Vec<_>>().join(", ")
    )
}

/// Everything that acts on events by itself: automations, dues and reactors.
fn acting(stack: &Stack) -> BTreeSet<&'static str> {
    let automations = stack.slices().filter(|(_, slice)| !slice.reacts_to.is_empty());
    let automations = automations.map(|(_, slice)| slice.name);
    let dues = stack.contexts.iter().flat_map(|context| &context.dues).map(|due| due.name);
    let reactors = stack.reactors().map(|(_, reactor)| reactor.name);
    automations.chain(dues).chain(reactors).collect()
}
