//! `ringfence trace`: the commands and events of a correlation id, as a tree with times.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use futures::{StreamExt, TryStreamExt};
use ringfence_core::rfc3339;
use ringfence_feed::{Entry, Until};
use ringfence_services::spans::TraceSpan;
use serde_json::{Value, json};

use crate::flow::{Flow, FlowRow};
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::place::CheckpointName;
use crate::remark;
use crate::tables::FeedTables;

#[derive(Args)]
#[command(after_help = "\
A command has the time of its first event, and how long that came after the event that led to the command. A command
without an event is not shown; its line is in the functions' logs. It reads all events, or those after --from: half a
read unit for each of up to 4 KB, and less for events that follow one another in a partition.

Examples:
  ringfence trace walk-1
  ringfence trace --stack ringfence-prod walk-1 --json")]
pub(crate) struct Arguments {
    /// The correlation id, as each event of the flow has it.
    #[arg(value_name = "CORRELATION-ID")]
    correlation_id: String,
    #[command(flatten)]
    index: FeedTables,
    /// Reads only events after this checkpoint: a number, `start` or `end`.
    #[arg(long, value_name = "CHECKPOINT", default_value = "start")]
    from: CheckpointName,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn trace(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { correlation_id, index, from, output } = arguments;
    let index = index.index(dynamo_client().await?).await?;
    let entries = index.read(from.checkpoint(&index).await?, Until::Present);
    let mut entries = entries.map(Entry::or_known);
    let mut of_flow = Vec::new();
    while let Some((entry, unread)) = entries.try_next().await? {
        if let Some(why) = unread {
            remark!("{}: {why}", entry.event.id());
        } else if entry.event.metadata.text("correlationId") == Some(correlation_id) {
            of_flow.push(entry);
        }
    }
    let trace = Trace { correlation_id: correlation_id.clone(), flow: Flow::new(of_flow) };
    let is_known = !trace.flow.commands.is_empty();
    Ok(output.end(&trace, is_known))
}

/// A flow with its correlation id.
struct Trace {
    correlation_id: String,
    flow: Flow,
}

impl Display for Trace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { correlation_id, flow } = self;
        let (began, ended) = flow.times();
        if flow.commands.is_empty() {
            return write_line!(
                f,
                "No event has the correlation id {correlation_id}. `ringfence tail --from start --json` shows the ids of all events."
            );
        }
        let events: usize = flow.commands.iter().map(|command| command.events.len()).sum();
        write_line!(
            f,
            "{correlation_id}: {} commands, {events} events, {} ms from {} on",
            flow.commands.len(),
            ended - began,
            rfc3339(began)
        )?;
        for FlowRow { command, level, waited_ms, .. } in flow.rows() {
            let (indent, after) = ("  ".repeat(level), command.times().0 - began);
            let by = command.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            let who = command.principal.as_ref().map(|who| format!(" for {who}"));
            let waited = waited_ms.map(|ms| format!(", {ms} ms after its cause"));
            let (who, waited) = (who.unwrap_or_default(), waited.unwrap_or_default());
            write_line!(f, "{after:>8} ms  {indent}{}{by}{who}{waited}", command.name())?;
            for entry in &command.events {
                let after = entry.event.at - began;
                let (event_type, id) = (&entry.event.event_type, entry.event.id());
                write_line!(f, "{after:>8} ms  {indent}  {event_type} {id}")?;
            }
        }
        Ok(())
    }
}

serialize_as!(Trace, |Trace { correlation_id, flow }| {
    let event = |Entry { event, .. }: &Entry| json!({ "id": event.id(), "type": event.event_type, "recordedAt": event.recorded_at() });
    let command = |(row, span): (FlowRow<'_>, TraceSpan)| {
        json!({
            "level": row.level,
            "context": row.command.context,
            "slice": row.command.slice,
            "commandId": row.command.id,
            "by": row.command.by,
            "principal": row.command.principal,
            "traceId": span.ids.trace_id(),
            "spanId": span.ids.span_id(),
            "parentSpanId": span.parent.map(|parent| parent.span_id()),
            "waitedMs": row.waited_ms,
            "events": row.command.events.iter().map(event).collect::<Value>(),
        })
    };
    let commands: Value = flow.rows().into_iter().zip(flow.spans()).map(command).collect();
    json!({ "correlationId": correlation_id, "commands": commands })
});
