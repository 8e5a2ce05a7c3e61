//! `ringfence parked`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringfence_dynamo::Clock;
use ringfence_views::{Definition, Parked, Projector, Retried};
use serde_json::{Value, json};

use crate::Lists;
use crate::progress;
use crate::say;
use crate::tables::{Dynamo, IndexTable, ViewTable};
use crate::view::definition;

#[derive(Args)]
#[command(after_help = "\
A row is parked when an event makes it too large, when it holds what DynamoDB can't store, or when the stored row
does not match the view's row type. It is served as an error until it is folded anew. Mend the view's fold, deploy,
and retry: `retry` folds with the views of this build. It reads the index once for each 100 rows of a view, so for
many rows `ringfence replay view` is faster.

Examples:
  ringfence parked show
  ringfence parked retry catalog-products")]
pub(crate) struct Arguments {
    #[command(flatten)]
    index: IndexTable,
    #[command(flatten)]
    views: ViewTable,
    #[command(flatten)]
    dynamo: Dynamo,
    /// The view; without it, all views.
    view: Option<String>,
    /// Prints one JSON document instead of lines for people.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    async fn projector(&self) -> Result<Projector> {
        let client = self.dynamo.client().await?;
        let index = self.index.index(client.clone());
        Ok(Projector::new(client, index, &self.views.view_table, Clock::system()))
    }

    fn definitions(&self, lists: &Lists) -> Result<Vec<Definition>> {
        match &self.view {
            None => Ok(lists.stack.views()),
            Some(view) => Ok(vec![definition(view, lists)?]),
        }
    }
}

pub(crate) async fn show(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let projector = arguments.projector().await?;
    let mut parked = Vec::new();
    for view in arguments.definitions(lists)? {
        let rows = projector.parked(&view).await?;
        parked.extend(rows.into_iter().map(|row| (view.name, row)));
    }
    Ok(end(arguments, None, &parked))
}

pub(crate) async fn retry(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let projector = arguments.projector().await?;
    let (mut shown, mut parked) = (0, Vec::new());
    for view in arguments.definitions(lists)? {
        let told = |at| progress::show(format_args!("{}: read to checkpoint {at}", view.name));
        let Retried { shown: more, left } = projector.retry(&view, &told).await?;
        shown += more;
        parked.extend(left.into_iter().map(|row| (view.name, row)));
    }
    progress::clear();
    Ok(end(arguments, Some(shown), &parked))
}

fn end(arguments: &Arguments, shown: Option<u64>, parked: &[(&str, (String, Parked))]) -> ExitCode {
    if arguments.json {
        let rows = parked.iter().map(|(view, (row, Parked { event, cause }))| {
            json!({ "view": view, "row": row, "event": event, "cause": cause })
        });
        let mut document = json!({ "parked": rows.collect::<Value>() });
        if let Some(shown) = shown {
            document["shown"] = shown.into();
        }
        say!("{document}");
    } else {
        for (view, (row, Parked { event, cause })) in parked {
            say!("{view} {row}: event {event}: {cause}");
        }
        match shown {
            None => say!("{} parked", parked.len()),
            Some(shown) => say!("{shown} shown again, {} left", parked.len()),
        }
    }
    if parked.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
