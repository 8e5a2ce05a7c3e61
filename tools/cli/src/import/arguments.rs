//! The flags of `ringfence import`, and the list of the sources.

use clap::{Args, ValueEnum};

use crate::out::Output;
use crate::stack::name;
use crate::tables::LogTables;

#[derive(Args)]
#[command(after_help = "\
Checks every event against the types, slices and views of this stack. If one does not fit, the cause and the lines or
items are named, and nothing is written. Otherwise the events are imported with their order and their times, each once,
so the command can be broken off and run again.

jsonl: the folder of `ringfence export --to jsonl`, or one file of such lines. Each event goes into the place that it
had, so its id stays: docs/data.md.

reventless: a table of another DCB log. The events go to the ends of their partitions, in the order of their positions.
Tags that a type does not declare are left out, and counted.

castore-legacy: a table of Castore's older layout, into the aggregate log.

propulsion-index: the order of the events in the index of Propulsion.DynamoStore, into the index.

Tables are read strongly, and their events are held in memory. docs/runbook.md says what becomes of each attribute, and
what is not read.

What acts on events would act on imported ones too: automations would take the places of events that come later. So
switch the rules and the schedules of the stack off first, as docs/data.md says, and then say --rules-are-off.
`cargo local --no-rules` starts a stack on this machine without them.

Examples:
  ringfence import --from jsonl shop-events --dry-run
  ringfence import --from jsonl shop-events --rules-are-off
  ringfence import --from reventless shop-dcb-events --table ringfence-prod-events --rules-are-off
  ringfence import --from castore-legacy shop-customers --context customers --stack ringfence-prod --rules-are-off
  ringfence import --from propulsion-index shop-events-index --stack ringfence-prod")]
pub(crate) struct Arguments {
    /// What the source is.
    #[arg(long)]
    pub(super) from: Origin,
    /// The folder, the file or the table to import from.
    #[arg(value_parser = name)]
    pub(super) source: String,
    /// The context whose events the source has, for a source that does not say it: castore-legacy.
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
    #[command(flatten)]
    pub(super) tables: LogTables,
    /// The table of the index, for what goes there: propulsion-index.
    #[arg(long, env = "INDEX_TABLE", value_parser = name)]
    pub(super) index_table: Option<String>,
    /// Says that the rules and the schedules of the stack are switched off, so that nothing acts on what is imported.
    #[arg(long, env = "RULES_ARE_OFF")]
    pub(super) rules_are_off: bool,
    /// Checks the events, and writes nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) output: Output,
}

/// What can be imported from.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Origin {
    /// An export to jsonl, or a file of such lines, into the logs of this stack.
    Jsonl,
    /// The DCB log of Reventless on DynamoDB, into the DCB log.
    Reventless,
    /// A table of Castore's older layout, which has one event store a table, into the aggregate log.
    CastoreLegacy,
    /// The order of events in the index of Propulsion.DynamoStore, into the index.
    PropulsionIndex,
}
