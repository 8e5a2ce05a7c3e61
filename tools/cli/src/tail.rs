//! `ringfence tail`.

use std::fmt::{self, Display, Formatter};
use std::io::{ErrorKind, Write, stdout};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use futures::StreamExt;
use ringfence_feed::{Checkpoint, Checkpoints, FeedStep, Until};

use crate::Lists;
use crate::line::of_entry;
use crate::lists::readable;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::place::{CheckpointName, Wanted};
use crate::progress;
use crate::shown::{Newest, ShownEvent, for_people};
use crate::stack::name;
use crate::tables::FeedTables;

/// A named reader saves its checkpoint after this many entries, if more wait.
const KEEP_ENTRIES: usize = 100;
/// Longest name of a reader, in bytes.
const READER_BYTES_MAX: usize = 256;

#[derive(Args)]
#[command(after_help = "\
The version of the payload follows the type, if it is above 1. `ringfence import` takes events as they are stored.

Examples:
  ringfence tail --type OrderPlaced --tag orderId:ord-1
  ringfence tail --from start --until-present --newest=false --json > events.jsonl
  ringfence tail --reader audit --json | ./audit")]
pub(crate) struct Arguments {
    #[command(flatten)]
    index: FeedTables,
    /// The table of the readers' checkpoints, for `--reader`.
    #[arg(long, env = "VIEW_TABLE", value_parser = name)]
    view_table: Option<String>,
    /// Begins after this checkpoint: a number, `start` or `end`.
    #[arg(long, value_name = "CHECKPOINT", default_value = "end")]
    from: CheckpointName,
    /// Continues where the reader of this name is, and saves its checkpoint after printing. A new reader begins at the
    /// start. After an interruption an event may be printed twice.
    #[arg(long, conflicts_with = "from", value_parser = reader)]
    reader: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
    /// Ends after the last event, and does not wait for more.
    #[arg(long)]
    until_present: bool,
    #[command(flatten)]
    shown: Newest<true>,
    #[command(flatten)]
    output: Output,
}

/// The name of a reader that is not a view's generation. If a generation moved without its rows, it would lack events
/// for ever.
fn reader(name: &str) -> Result<String, &'static str> {
    let right = (1..=READER_BYTES_MAX).contains(&name.len()) && !name.contains('#');
    right
        .then(|| name.to_owned())
        .ok_or("a reader's name has 1 to 256 bytes and no #, which is for views")
}

/// A reader that saves its checkpoint.
struct Reader<'a> {
    name: &'a str,
    checkpoints: Checkpoints,
    at: Option<Checkpoint>,
}

/// How far it is.
#[derive(Default)]
struct Done {
    read: u64,
    printed: u64,
    at: Option<Checkpoint>,
}

impl Display for Done {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { read, printed, at } = self;
        write!(f, "{read} events read, {printed} printed")?;
        at.map_or(Ok(()), |at| write!(f, ", at checkpoint {at}"))
    }
}

pub(crate) async fn tail(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let client = dynamo_client().await?;
    let mut reader = match (&arguments.reader, &arguments.view_table) {
        (Some(name), Some(table)) => {
            let checkpoints = Checkpoints::new(client.clone(), table);
            let at = checkpoints.load(name).await?;
            Some(Reader { name, checkpoints, at })
        }
        (Some(name), None) => bail!(
            "--reader {name} keeps its checkpoint in the table of the views: give --view-table, \
             VIEW_TABLE or --stack"
        ),
        (None, _) => None,
    };
    let index = arguments.index.index(client).await?;
    arguments.wanted.warn(&lists.stack);
    let from = match &reader {
        Some(reader) => reader.at.unwrap_or(Checkpoint::START),
        None => arguments.from.checkpoint(&index).await?,
    };
    let until = if arguments.until_present { Until::Present } else { Until::Forever };
    let filter = arguments.wanted.filter();
    let mut done = Done::default();
    // Waiting events are printed together, and the checkpoint is saved once for all.
    let mut steps = index.read_where(from, until, filter.wants()).ready_chunks(KEEP_ENTRIES);
    while let Some(chunk) = steps.next().await {
        let mut failed = None;
        progress::clear();
        for step in chunk {
            match FeedStep::or_known(step) {
                Ok((checkpoint, known)) => {
                    done.read += 1;
                    done.at = Some(checkpoint);
                    let event = known.map(|known| readable(known).event);
                    if let Some(event) = event.filter(|event| filter.matches(event)) {
                        let shown = lists.shown(event, arguments.shown.newest);
                        match arguments.output.next(&Printed(checkpoint, shown)) {
                            // Nobody reads the output any more, as with `| head`.
                            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                                return Ok(ExitCode::SUCCESS);
                            }
                            printed => printed?,
                        }
                        done.printed += 1;
                    }
                }
                Err(error) => failed = Some(error),
            }
        }
        stdout().flush()?;
        progress::show(&done);
        if let (Some(reader), Some(to)) = (&mut reader, done.at)
            && reader.at != Some(to)
        {
            reader.checkpoints.advance(reader.name, reader.at, to).await?;
            reader.at = Some(to);
        }
        if let Some(error) = failed {
            return Err(error.into());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// An entry that is printed.
struct Printed(Checkpoint, ShownEvent);

impl Display for Printed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(checkpoint, shown) = self;
        let (event_type, version, partition) =
            (&shown.event_type, shown.version(), &shown.partition);
        let (time, origin, data) =
            (shown.recorded_at(), shown.metadata.origin(), for_people(&shown.data));
        write_line!(
            f,
            "{checkpoint:>9}  {time}  {event_type}{version}  {partition}  {origin}  {data}"
        )
    }
}

serialize_as!(Printed, |Printed(checkpoint, shown)| of_entry(*checkpoint, shown));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_what_was_read_and_printed_and_where_it_is() {
        let mut done = Done::default();
        assert_eq!(done.to_string(), "0 events read, 0 printed");
        done = Done { read: 200, printed: 3, at: Checkpoint::try_from(1_200).ok() };
        assert_eq!(done.to_string(), "200 events read, 3 printed, at checkpoint 1200");
    }
}
