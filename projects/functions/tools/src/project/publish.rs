//! `ringfence project publish`: a local project becomes a project of a stack.
//!
//! Its events keep their places and their times, so an event of the local project is found again under its id.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use futures::TryStreamExt;
use projects::{ProjectId, Projects};
use ringfence_aws::Clock;
use ringfence_cli::machine::dynamo_client;
use ringfence_cli::recorded::{ForeignEvent, Imports};
use ringfence_cli::tables::{EventTable, IndexTable};
use ringfence_cli::{Lists, say};
use ringfence_core::{
    Access, BoundaryId, Consistency, Context as _, Envelope, EventLog, Name, NewEvent, Plan, Read,
    SequencedEvent,
};
use ringfence_feed::Index;

use super::folder::Folder;
use super::pull::{Origin, reconstruct};

/// How many partitions are read at once.
const PARTITIONS: usize = 50;

#[derive(Args)]
#[command(after_help = "\
Nobody else may work on a project of this name meanwhile. If the stack has other events in the partitions of the
project, nothing is written. Each event is imported once, at its place and time, so the command can be broken off and
run again. At the end the stack's events are compared with the file's, and the file becomes a copy. With `--stay-local`
it stays the log: work goes on here, and the next publishing brings the new events.

Examples:
  ringfence project publish --project shop --table ringfence-prod-events --index-table ringfence-prod-index
  ringfence --stack ringfence-prod project publish --stay-local")]
pub(crate) struct Publish {
    /// The project stays local, so only this file goes on. Publish again to bring new events.
    #[arg(long)]
    stay_local: bool,
    #[command(flatten)]
    table: EventTable,
    #[command(flatten)]
    index: IndexTable,
}

pub(crate) async fn run(folder: &Folder, arguments: &Publish, lists: &Lists) -> Result<ExitCode> {
    let (folder, project) = (folder.write()?, &folder.project);
    ensure!(
        folder.is_local()?,
        "{} is not local: there is nothing to publish, and `ringfence project pull` copies the stack's events",
        project
    );
    let mut events = Vec::new();
    let end = folder.lines(|line| {
        events.push(line.event()?);
        Ok(())
    })?;
    // At the end the file is replaced. The rest of a torn append is kept beside it.
    drop(folder.behind(&end)?);
    let client = dynamo_client().await?;
    arguments.table.check(&client).await?;
    let clock = Clock::fixed(0);
    let log = arguments.table.log_at(client.clone(), &lists.stack.catalog, clock.clone());
    let there = compare(&log, project, &events).await.context("nothing is written")?;
    let mut imports = Imports { before: there.len() as u64, ..Imports::default() };
    let new = events.iter().filter(|event| !there.contains(&event.id())).map(recorded);
    imports.import(new.collect(), &log, &clock).await?;
    let found = compare(&log, project, &events).await?.len();
    ensure!(found == events.len(), "the stack has {found} of {} events: repeat it", events.len());
    if arguments.stay_local {
        say!("{imports}");
        return Ok(ExitCode::SUCCESS);
    }
    let log = arguments.table.bodies(client.clone());
    let index = Origin::Index(Index::new(client, &arguments.index.index_table, log));
    let copied = reconstruct(&index, &folder, None).await?;
    say!("{imports}");
    if copied < events.len() as u64 {
        say!("the index has {copied} of them by now: `ringfence project pull` brings the rest");
    }
    Ok(ExitCode::SUCCESS)
}

fn recorded(event: &SequencedEvent) -> ForeignEvent {
    let (tags, data) = (event.tags.clone(), event.data.clone());
    let event_type = event.event_type.clone().into();
    ForeignEvent {
        id: event.id(),
        ms: event.at,
        event: NewEvent { event_type, tags, data },
        metadata: event.metadata.clone(),
    }
}

/// The ids of the events that the stack has.
///
/// # Errors
/// It has other events in the partitions of the project.
async fn compare(
    log: &impl EventLog,
    project: &ProjectId,
    events: &[SequencedEvent],
) -> Result<BTreeSet<String>> {
    let own: BTreeMap<String, &SequencedEvent> =
        events.iter().map(|event| (event.id(), event)).collect();
    let partitions = events.iter().map(|event| event.partition.clone());
    let first = BoundaryId::tag("project", &project.to_string());
    let partitions: BTreeSet<_> = partitions.chain([first]).collect();
    let catalog = Projects::catalog()?;
    let types: BTreeSet<Name> = catalog.schemas().map(|schema| schema.name.clone()).collect();
    let reads = partitions.into_iter().map(|boundary| {
        let (access, types) = (Access::Partition, types.clone());
        Read { boundary, access, types, fenced: false, after: 0 }
    });
    let (reads, envelope): (Vec<Read>, _) = (reads.collect(), Envelope::default());
    let mut found = BTreeSet::new();
    for reads in reads.chunks(PARTITIONS) {
        let plan = Plan { clauses: vec![], reads: reads.to_vec() };
        let mut there = log.read(&plan, Consistency::Strong, &envelope);
        while let Some(event) = there.try_next().await? {
            let is_own = own.get(&event.id()).is_some_and(|own| {
                (own.at, &own.event_type, &own.data) == (event.at, &event.event_type, &event.data)
            });
            ensure!(
                is_own,
                "the stack has an event {} that is not the local project's: it has another project of the name {project}",
                event.id()
            );
            found.insert(event.id());
        }
    }
    Ok(found)
}
