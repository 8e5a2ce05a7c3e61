//! `ringfence aggregates list`.

use std::fmt::{self, Display, Formatter};
use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringfence_aggregate_log::{AggregateTable, ListOptions, ListedAggregate};
use ringfence_aws::{Clock, TIME_WANTED, ms_of_rfc3339};
use ringfence_core::{LogKind, rfc3339};
use serde_json::{Value, json};

use crate::Lists;
use crate::layout::Layout;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::stack::name;

#[derive(Args)]
#[command(after_help = "\
Lists the aggregates of a context by the times of their first events, from the index `initialEvents`. About 40 of them
cost half a read unit. A new aggregate may be missing for a moment. The table may also have Castore's older layout,
which has one event store a table.

Examples:
  ringfence aggregates list --context customers --limit 20 --reverse
  ringfence aggregates list --context customers --aggregate-table castore-customers --after 2026-01-01T00:00:00.000Z")]
pub(crate) struct Arguments {
    /// The context, which is the id of the event store.
    #[arg(long, value_name = "NAME")]
    context: String,
    /// Only aggregates whose first event is at this time or later, such as 2026-01-01T00:00:00.000Z.
    #[arg(long, value_name = "TIME", value_parser = time)]
    after: Option<String>,
    /// Only aggregates whose first event is at this time or earlier.
    #[arg(long, value_name = "TIME", value_parser = time)]
    before: Option<String>,
    /// Lists the youngest first.
    #[arg(long)]
    reverse: bool,
    /// At most this many.
    #[arg(long, value_name = "NUMBER")]
    limit: Option<NonZeroU32>,
    /// The table of the aggregate log.
    #[arg(long, env = "AGGREGATE_TABLE", value_parser = name)]
    aggregate_table: String,
    #[command(flatten)]
    output: Output,
}

/// A time in the form that events have, because lists compare texts.
fn time(text: &str) -> Result<String, &'static str> {
    ms_of_rfc3339(text).map(rfc3339).ok_or(TIME_WANTED)
}

pub(crate) async fn list(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { context, aggregate_table, .. } = arguments;
    let (client, clock) = (dynamo_client().await?, Clock::system());
    let table = match Layout::of(&client, aggregate_table).await? {
        Layout::AggregatesOfOneStore => {
            AggregateTable::legacy(client, aggregate_table, context, clock)?
        }
        found => {
            found.is(Layout::Aggregates, aggregate_table)?;
            AggregateTable::new(client, aggregate_table, clock)
        }
    };
    let mut listed = Listed(Vec::new());
    let mut options = ListOptions {
        limit: arguments.limit,
        page_token: None,
        initial_event_after: arguments.after.clone(),
        initial_event_before: arguments.before.clone(),
        reverse: Some(arguments.reverse),
    };
    loop {
        let page = table.list_aggregate_ids(context, &options).await?;
        listed.0.extend(page.aggregates);
        let left = arguments.limit.map(|limit| {
            let found = u32::try_from(listed.0.len()).unwrap_or(u32::MAX);
            NonZeroU32::new(limit.get().saturating_sub(found))
        });
        if page.next_page_token.is_none() || left == Some(None) {
            if listed.0.is_empty() {
                // A table of another system may have event stores that no context here has.
                lists.context_on(context, LogKind::Aggregates)?;
            }
            return Ok(arguments.output.end(&listed, true));
        }
        options.page_token = page.next_page_token;
        options.limit = left.flatten();
    }
}

struct Listed(Vec<ListedAggregate>);

impl Display for Listed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for ListedAggregate { id, initial_event_timestamp } in &self.0 {
            write_line!(f, "{initial_event_timestamp}  {id}")?;
        }
        write_line!(f, "{} aggregates", self.0.len())
    }
}

serialize_as!(Listed, |Listed(all)| {
    let listed = |ListedAggregate { id, initial_event_timestamp }: &ListedAggregate| json!({ "id": id, "initialEventTimestamp": initial_event_timestamp });
    json!({ "aggregates": all.iter().map(listed).collect::<Value>() })
});
