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
The new generation is folded from the first event on, by the views of this build: deploy the changed
view first. Broken off, it goes on from there with the same command; what was built by then keeps rows of
the fold that built it, so if the fold has changed since, begin `--anew`, with no other rebuild under way. The one that is served stays current
until the new one has caught up with it; then its rows are deleted.

Example:
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
    /// Gives up what a rebuild that was broken off has built, and begins with the first event.
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
        rebuilt.context("the same command, without --anew, goes on from there")
    };
    let mut generation = rebuild().await?;
    if arguments.anew && !flipped.load(Relaxed) {
        // That was the end of an earlier rebuild.
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
            "{}: the rebuild before is finished, generation {generation} was served by it; \
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
