//! The flags of `ringfence import`, and the list of the sources.

use clap::{Args, ValueEnum};

use crate::out::Output;
use crate::stack::name;
use crate::tables::LogTables;

#[derive(Args)]
#[command(after_help = "\
Checks every event against the types, slices and views of this stack. If one does not fit, it names the cause and the
lines or items, and writes nothing. Otherwise it imports the events in their order and with their times, each once. So
the command can be broken off and run again.

jsonl: the folder of `ringfence export`, or one file of such lines. Each event keeps its place and its id:
docs/data.md.

reventless: a table of another DCB log. The events go to the ends of their partitions, in the order of their positions.
Tags that a type does not declare are left out, and counted.

castore-legacy: a table of Castore's older layout, into the aggregate log.

propulsion-index: the order of the events in the index of Propulsion.DynamoStore, into the index.

Tables are read strongly, and their events are held in memory. docs/runbook.md lists the attributes that are imported,
and those that are not.

Automations, deadlines and reactors would act on imported events too, and automations would take the places of later
events. So switch the rules and the schedules of the stack off first, as docs/data.md says, and then add
--rules-are-off. `cargo local --no-rules` starts a stack on this machine without them.

Examples:
  ringfence import --from jsonl shop-events --dry-run
  ringfence import --from jsonl shop-events --rules-are-off
  ringfence import --from reventless shop-dcb-events --table ringfence-prod-events --rules-are-off
  ringfence import --from castore-legacy shop-customers --context customers --stack ringfence-prod --rules-are-off
  ringfence import --from propulsion-index shop-events-index --stack ringfence-prod")]
pub(crate) struct Arguments {
    /// The kind of source.
    #[arg(long)]
    pub(super) from: Origin,
    /// The folder, the file or the table to import from.
    #[arg(value_parser = name)]
    pub(super) source: String,
    /// The context of the events, for a source that does not say it: castore-legacy.
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
    #[command(flatten)]
    pub(super) tables: LogTables,
    /// The table of the index, for propulsion-index.
    #[arg(long, env = "INDEX_TABLE", value_parser = name)]
    pub(super) index_table: Option<String>,
    /// Says that the rules and the schedules of the stack are off, so nothing acts on imported events.
    #[arg(long, env = "RULES_ARE_OFF")]
    pub(super) rules_are_off: bool,
    /// Checks the events, and writes nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) output: Output,
}

/// The sources.
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
