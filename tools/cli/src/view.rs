//! `ringfence replay view`.

use std::fmt::{self, Formatter};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result};
use clap::Args;
use ringfence_aws::Clock;
use ringfence_feed::Checkpoint;
use ringfence_views::{Definition, Generation, Projector, Step};
use serde_json::json;

use crate::Lists;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as};
use crate::progress;
use crate::remark;
use crate::tables::{FeedTables, ViewTable};

#[derive(Args)]
#[command(after_help = "\
The new generation is folded from the first event on, with the views of this build, so deploy the changed view
first. If it breaks off while it folds, the same command begins again; after that it continues. If the fold has
changed since, begin with `--from-start`. A second rebuild ends one that still folds. The old generation is served and
stays current until the new one has caught up. Then its rows are deleted.

Examples:
  ringfence replay view product-demand
  ringfence replay view product-demand --from-start")]
pub(crate) struct Arguments {
    #[command(flatten)]
    index: FeedTables,
    #[command(flatten)]
    views: ViewTable,
    /// The view.
    view: String,
    /// Deletes the rows of an unfinished rebuild, and begins with the first event.
    #[arg(long)]
    from_start: bool,
    #[command(flatten)]
    output: Output,
}

/// The view of this name.
pub(crate) fn definition(name: &str, lists: &Lists) -> Result<Definition> {
    let views = lists.stack.rows();
    let found = views.iter().find(|view| view.name == name).copied();
    let names: Vec<_> = views.iter().map(|view| view.name).collect();
    found.with_context(|| format!("there is no view {name}: the views are {}", names.join(", ")))
}

/// The end of a rebuild.
pub struct Rebuilt {
    view: &'static str,
    /// The generation that is served.
    live: Generation,
    /// Whether this rebuild built it. Otherwise an earlier rebuild was completed.
    is_new: bool,
    /// How many of its rows and events are parked.
    pub parked: u64,
}

impl fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { view, live, is_new, .. } = self;
        match is_new {
            true => write!(f, "{view}: generation {live} is served"),
            false => write!(
                f,
                "{view}: an earlier rebuild is finished, and its generation {live} is served; to build the \
                 view, run this again"
            ),
        }
    }
}

/// Rebuilds a view. With `from_start` it first deletes the rows of an unfinished rebuild. It reports
/// its progress to `end`, the end of the index.
pub async fn run(
    projector: &Projector,
    end: Checkpoint,
    view: &Definition,
    from_start: bool,
    show: &(dyn Fn(String) + Send + Sync),
) -> Result<Rebuilt> {
    let name = view.name;
    let flipped = AtomicBool::new(false);
    let show_step = |step| match step {
        Step::Built(generation, at) => {
            show(format!("{name} generation {generation}: at checkpoint {at} of about {end}"));
        }
        Step::Flipped(generation) => {
            flipped.store(true, Relaxed);
            show(format!("{name} generation {generation} is served"));
        }
        Step::Deleted(generation, rows) => {
            show(format!("{name} generation {generation}: {rows} old rows deleted"));
        }
    };
    if from_start {
        projector.abandon(view, &show_step).await?;
    }
    let rebuild = || async {
        let rebuilt = projector.rebuild(view, &show_step).await;
        rebuilt.context("to go on, rebuild the view again without --from-start")
    };
    let mut live = rebuild().await?;
    if from_start && !flipped.load(Relaxed) {
        // This completed an earlier rebuild.
        live = rebuild().await?;
    }
    let registered = projector.register(view).await?;
    let parked = registered.parked + registered.parked_events;
    Ok(Rebuilt { view: name, live, is_new: flipped.into_inner(), parked })
}

pub(crate) async fn rebuild(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { index, views, view, from_start, output } = arguments;
    let view = definition(view, lists)?;
    let client = dynamo_client().await?;
    let index = index.index(client.clone()).await?;
    let end = index.end().await?;
    let catalogs = lists.stack.catalogs.clone();
    let projector = Projector::new(client, index, &views.view_table, catalogs, Clock::system());
    let rebuilt = run(&projector, end, &view, *from_start, &|line| progress::show(line)).await?;
    let Rebuilt { view, parked, .. } = &rebuilt;
    let status = output.end(&rebuilt, *parked == 0);
    if *parked > 0 {
        remark!("{parked} rows and events are parked: see `ringfence parked show {view}`");
    }
    Ok(status)
}

serialize_as!(Rebuilt, |Rebuilt { view, live, is_new, parked }| json!({
    "view": view, "live": live.to_string(), "rebuilt": is_new, "parked": parked,
}));
