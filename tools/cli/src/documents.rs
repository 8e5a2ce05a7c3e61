//! `ringfence documents`.

pub(crate) mod prune;

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::{Error, Result};
use clap::Args;
use futures::TryStreamExt;
use ringfence_aws::Clock;
use ringfence_core::Envelope;
use ringfence_document_log::{DocumentLog, DynamoStore, ItemError, StreamDefect, StreamName};
use serde_json::{Value, json};

use crate::layout::Layout;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::progress;
use crate::stack::name;

/// A writer can make a stream look wrong during a read. A stream that looks wrong this many times is wrong.
const LOOKS: u32 = 3;
/// Streams that are read at once.
const STREAMS_AT_ONCE: usize = 16;
/// The number of streams between two updates of the progress.
const PROGRESS_STREAMS: u64 = 100;

#[derive(Args)]
#[command(after_help = "\
Lists the streams of the table and reads each whole with strong consistency, while writers go on. A stream that
looks wrong is read three times. Nothing is changed. docs/runbook.md explains the lines and says what to do.

Examples:
  ringfence documents verify --document-table ringfence-prod-documents
  ringfence documents verify --json")]
pub(crate) struct Arguments {
    /// The table of the document log.
    #[arg(long, env = "DOCUMENT_TABLE", value_parser = name)]
    document_table: String,
    #[command(flatten)]
    output: Output,
}

/// A fault of a stream.
enum Wrong {
    Problem(StreamDefect),
    /// An item is neither a Tip nor a calf.
    Item(String),
}

#[derive(Default)]
struct Report {
    streams: u64,
    events: u64,
    calves: u64,
    /// Each fault with the name of its stream; an item without a name stands for itself.
    wrong: Vec<(String, Wrong)>,
}

pub(crate) async fn verify(arguments: &Arguments) -> Result<ExitCode> {
    let client = dynamo_client().await?;
    Layout::Documents.check(&client, &arguments.document_table).await?;
    let store = DynamoStore::new(client, &arguments.document_table);
    let log = DocumentLog::new(store, Clock::system());
    let envelope = Envelope::default();
    let mut report = Report::default();
    let looks = log.streams(&envelope).map_err(Error::from).map_ok(|listed| async {
        match listed {
            Ok(head) => {
                let looked = look(&log, &head.stream, &envelope).await?;
                Ok((head.stream.to_string(), looked))
            }
            Err(item) => Ok((item.stream().to_owned(), Err(item.to_string()))),
        }
    });
    let mut looks = looks.try_buffered(STREAMS_AT_ONCE);
    while let Some((stream, looked)) = looks.try_next().await? {
        report.add(stream, looked);
    }
    Ok(arguments.output.end(&report, report.wrong.is_empty()))
}

type Looked = Result<ringfence_document_log::StreamReport, String>;

/// Reads a stream, and reads it again if it looks wrong. The inner error is an item that can't be understood.
async fn look(
    log: &DocumentLog<DynamoStore>,
    stream: &StreamName,
    envelope: &Envelope,
) -> Result<Looked> {
    let mut looks = 1;
    loop {
        match log.verify(stream, envelope).await {
            Ok(report) if report.problems.is_empty() || looks == LOOKS => return Ok(Ok(report)),
            Ok(_) => looks += 1,
            Err(error) => return unreadable(error.into()).map(Err),
        }
    }
}

/// The cause, if an item can't be understood. That concerns one stream, so the check goes on with the others.
fn unreadable(error: Error) -> Result<String> {
    let is_item = error.chain().any(|cause| cause.is::<ItemError>());
    if is_item { Ok(format!("{error:#}")) } else { Err(error) }
}

impl Report {
    fn add(&mut self, stream: String, looked: Looked) {
        let is_known =
            |(known, wrong): &(String, Wrong)| *known == stream && matches!(wrong, Wrong::Item(_));
        // One item can fail both the listing and the read of its stream.
        if looked.is_err() && self.wrong.iter().any(is_known) {
            return;
        }
        self.streams += 1;
        let wrong = match looked {
            Err(item) => vec![Wrong::Item(item)],
            Ok(report) => {
                self.events += report.version.saturating_sub(report.first);
                self.calves += report.calves;
                report.problems.into_iter().map(Wrong::Problem).collect()
            }
        };
        self.wrong.extend(wrong.into_iter().map(|wrong| (stream.clone(), wrong)));
        if self.streams.is_multiple_of(PROGRESS_STREAMS) {
            progress::show(format_args!("{} streams read", self.streams));
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { streams, events, calves, wrong } = self;
        for (stream, wrong) in wrong {
            match wrong {
                Wrong::Problem(problem) => write_line!(f, "wrong    {stream}: {problem}")?,
                Wrong::Item(cause) => write_line!(f, "wrong    {stream}: {cause}")?,
            }
        }
        let end = if wrong.is_empty() { "all in order" } else { "not in order" };
        write_line!(f, "{streams} streams, {events} events, {calves} calves: {end}")
    }
}

serialize_as!(Report, |Report { streams, events, calves, wrong }| json!({
    "streams": streams, "events": events, "calves": calves, "inOrder": wrong.is_empty(),
    "wrong": wrong.iter().map(|(stream, wrong)| json(stream, wrong)).collect::<Value>(),
}));

fn json(stream: &str, wrong: &Wrong) -> Value {
    let mut json = match wrong {
        Wrong::Item(cause) => json!({ "wrong": "item", "cause": cause }),
        Wrong::Problem(problem) => match problem {
            StreamDefect::NoTip => json!({ "wrong": "noTip" }),
            StreamDefect::Hole { from, to } => json!({ "wrong": "hole", "from": from, "to": to }),
            StreamDefect::Overlap { from } => json!({ "wrong": "overlap", "from": from }),
            StreamDefect::Key { key, base } => json!({ "wrong": "key", "key": key, "base": base }),
            StreamDefect::Calf { key } => json!({ "wrong": "calf", "key": key }),
            StreamDefect::CalvedBytes { said, found } => {
                json!({ "wrong": "calvedBytes", "said": said, "found": found })
            }
            StreamDefect::Appended { appended, version } => {
                json!({ "wrong": "appended", "appended": appended, "version": version })
            }
            StreamDefect::Unfold { event_type, unfold, version } => json!({
                "wrong": "unfold", "type": event_type, "unfold": unfold, "version": version,
            }),
        },
    };
    json["stream"] = stream.into();
    json
}
