//! `ringfence parked`.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringfence_dynamo::Clock;
use ringfence_views::{Definition, Parked, Projector, Retried};
use serde_json::{Value, json};

use crate::Lists;
use crate::out::{Output, serialize_as, write_line};
use crate::progress;
use crate::tables::{DynamoEndpoint, IndexTable, ViewTable};
use crate::view::definition;

#[derive(Args)]
#[command(after_help = "\
A row is parked when an event makes it too large, when it holds what DynamoDB can't store, or when the stored row
does not match the view's row type. It is served as an error until it is folded again. Mend the view's fold, deploy,
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
    dynamo: DynamoEndpoint,
    /// The view; without it, all views.
    view: Option<String>,
    #[command(flatten)]
    output: Output,
}

impl Arguments {
    async fn projector(&self, lists: &Lists) -> Result<Projector> {
        let client = self.dynamo.client().await?;
        let index = self.index.index(client.clone()).await?;
        let catalogs = lists.stack.catalogs.clone();
        Ok(Projector::new(client, index, &self.views.view_table, catalogs, Clock::system()))
    }

    fn definitions(&self, lists: &Lists) -> Result<Vec<Definition>> {
        match &self.view {
            None => Ok(lists.stack.rows()),
            Some(view) => Ok(vec![definition(view, lists)?]),
        }
    }
}

pub(crate) async fn show(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let projector = arguments.projector(lists).await?;
    let mut parked = Vec::new();
    for view in arguments.definitions(lists)? {
        let rows = projector.parked(&view).await?;
        parked.extend(rows.into_iter().map(|row| (view.name, row)));
    }
    let left = Left { shown: None, parked };
    Ok(arguments.output.end(&left, left.parked.is_empty()))
}

pub(crate) async fn retry(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let projector = arguments.projector(lists).await?;
    let (mut shown, mut parked) = (0, Vec::new());
    for view in arguments.definitions(lists)? {
        let told = |at| progress::show(format_args!("{}: read to checkpoint {at}", view.name));
        let Retried { shown: more, left } = projector.retry(&view, &told).await?;
        shown += more;
        parked.extend(left.into_iter().map(|row| (view.name, row)));
    }
    let left = Left { shown: Some(shown), parked };
    Ok(arguments.output.end(&left, left.parked.is_empty()))
}

/// The rows that are parked now.
struct Left {
    /// How many a retry has shown again; `None` if it was no retry.
    shown: Option<u64>,
    /// Each with the name of its view.
    parked: Vec<(&'static str, (String, Parked))>,
}

impl Display for Left {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (view, (row, Parked { event, cause })) in &self.parked {
            write_line!(f, "{view} {row}: event {event}: {cause}")?;
        }
        let left = self.parked.len();
        match self.shown {
            None => write_line!(f, "{left} parked"),
            Some(shown) => write_line!(f, "{shown} shown again, {left} left"),
        }
    }
}

serialize_as!(Left, |Left { shown, parked }| {
    let rows = parked.iter().map(|(view, (row, Parked { event, cause }))| {
        json!({ "view": view, "row": row, "event": event, "cause": cause })
    });
    let mut json = json!({ "parked": rows.collect::<Value>() });
    if let Some(shown) = shown {
        json["shown"] = json!(shown);
    }
    json
});
