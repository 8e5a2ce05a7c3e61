//! `ringfence replay view`.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result};
use clap::Args;
use ringfence_dynamo::Clock;
use ringfence_views::{Definition, Projector, Step};
use serde_json::json;

use crate::progress;
use crate::tables::{Dynamo, IndexTable, ViewTable};

#[derive(Args)]
#[command(after_help = "\
The new generation is folded from the first event on, with the views of this build, so deploy the changed view
first. After an interruption the same command goes on with the rows that were built by then. If the fold has
changed since, begin with `--anew`, while no other rebuild is under way. The generation that is served stays
current until the new one has caught up with it. Then its rows are deleted.

Examples:
  ringfence replay view product-demand
  ringfence replay view product-demand --anew")]
pub(crate) struct Arguments {
    #[command(flatten)]
    index: IndexTable,
    #[command(flatten)]
    views: ViewTable,
    #[command(flatten)]
    dynamo: Dynamo,
    /// The view.
    #[arg(value_parser = definition)]
    view: Definition,
    /// Gives up the rows of an unfinished rebuild, and begins with the first event.
    #[arg(long)]
    anew: bool,
    /// Prints one JSON document instead of lines for people.
    #[arg(long)]
    json: bool,
}

pub(crate) fn definition(name: &str) -> Result<Definition, String> {
    let views = crate::views();
    let found = views.iter().find(|view| view.name == name).copied();
    let names: Vec<_> = views.iter().map(|view| view.name).collect();
    found.ok_or_else(|| format!("the views are {}", names.join(", ")))
}

pub(crate) async fn rebuild(arguments: &Arguments) -> Result<ExitCode> {
    let client = arguments.dynamo.client().await;
    let index = arguments.index.index(client.clone());
    let end = index.end().await?;
    let table = &arguments.views.view_table;
    let projector = Projector::new(client, index, table, Clock::system());
    let view = &arguments.view;
    let flipped = AtomicBool::new(false);
    let told = |step| match step {
        Step::Built(generation, at) => progress::show(format_args!(
            "{} generation {generation}: at checkpoint {at} of about {end}",
            view.name
        )),
        Step::Flipped(generation) => {
            flipped.store(true, Relaxed);
            progress::show(format_args!("{} generation {generation} is served", view.name));
        }
        Step::Deleted(generation, rows) => progress::show(format_args!(
            "{} generation {generation}: {rows} old rows deleted",
            view.name
        )),
    };
    if arguments.anew {
        projector.abandon(view, &told).await?;
    }
    let rebuild = || async {
        let rebuilt = projector.rebuild(view, &told).await;
        rebuilt.context("run the same command without --anew to go on from there")
    };
    let mut generation = rebuild().await?;
    if arguments.anew && !flipped.load(Relaxed) {
        // This only finished an earlier rebuild.
        generation = rebuild().await?;
    }
    progress::clear();
    let parked = projector.register(view).await?.parked;
    if arguments.json {
        let (view, live, rebuilt) = (view.name, generation.0, flipped.into_inner());
        let document = json!({ "view": view, "live": live, "rebuilt": rebuilt, "parked": parked });
        println!("{document}");
    } else if !flipped.into_inner() {
        println!(
            "{}: an earlier rebuild is finished, and its generation {generation} is served; \
             to build the view anew, run this again",
            view.name
        );
    } else {
        println!("{}: generation {generation} is served", view.name);
    }
    if parked == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{parked} rows are parked: see `ringfence parked show {}`", view.name);
    Ok(ExitCode::FAILURE)
}
