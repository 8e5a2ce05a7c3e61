//! Copies from an export, which has a folder for each project.

use std::fs;
use std::path::Path;

use futures::StreamExt;
use projects::exchange::Segment;
use projects::export_projects::Round;
use ringfence_aws::wire::Wire;
use ringfence_feed::{Checkpoint, Index, Until};
use serde_json::json;

use crate::local::fails;
use crate::world::{Agent, INDEX, Ran, World, edge, log};

/// Exports the index after a checkpoint, as the function does, and returns its end.
async fn exports(world: &World, folder: &Path, behind: Checkpoint) -> Checkpoint {
    let client = Wire::default().client(world.dynamo());
    let index = Index::new(client.clone(), INDEX, [log(client.clone()).into()]);
    let mut entries = index.read(behind, Until::Present).fuse();
    let Some(round) = Round::read(&mut entries).await.unwrap() else { return behind };
    for (project, Segment { name, text }) in round.segments {
        let folder = folder.join(project.to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name.to_string()), text).unwrap();
    }
    round.behind
}

/// Runs with an export in place of the index.
fn runs(agent: &Agent<'_>, export: &Path, arguments: &[&str]) -> Ran {
    let mut command = agent.command(arguments);
    command.env_remove("INDEX_TABLE").env("RINGFENCE_EXPORT", export);
    Ran::of(command.output().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_gives_the_copy_that_the_index_gives_and_needs_no_events_of_others() {
    let world = World::start().await;
    let (eve, bob, other) = (world.multi(), world.agent("bob"), world.agent("eve"));
    let init = json!({ "project": "other", "config": { "edges": [{ "edge": "only" }] } });
    other.does("init-project", &init).ends(0);
    let folder = tempfile::tempdir().unwrap();
    let export = folder.path();
    let pulled = |events: u32| {
        let ran = runs(&bob, export, &["--project", "shop", "pull"]);
        let expected = format!("{events} events added to shop\n");
        assert_eq!((ran.status, ran.stdout), (0, expected), "{}", ran.stderr);
    };
    let none = "the export has no project shop; it has none at all. ";
    fails(&runs(&bob, export, &["--project", "shop", "pull"]), none);
    let end = exports(&world, export, Checkpoint::START).await;
    fs::remove_dir_all(export.join("other")).unwrap();
    pulled(3);
    // Two exporters at once, or one that begins again, write segments that overlap.
    eve.creates("PAY");
    let end = exports(&world, export, end).await;
    eve.creates("SHIP");
    exports(&world, export, Checkpoint::START).await;
    exports(&world, export, end).await;
    pulled(2);
    pulled(0);
    eve.pulls();
    assert_eq!(bob.text("events.jsonl"), eve.text("events.jsonl"));
    let text = bob.text("events.jsonl");
    runs(&bob, export, &["reconstruct"]).ends(0);
    assert_eq!(bob.text("events.jsonl"), text);
    // A missing event is there after the next export; the command line waits for it, as with the index.
    let of = edge("AUTH", "design_code");
    assert_eq!(runs(&bob, export, &["claim", &of]).status, 0);
    exports(&world, export, Checkpoint::START).await;
    pulled(1);
    // The index has both, and goes on after the lines of the export.
    assert_eq!(bob.runs(&["pull"]).stdout, "0 events added to shop\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_export_and_one_of_another_index_are_refused_and_the_copy_stays() {
    let world = World::start().await;
    let eve = world.multi();
    let folder = tempfile::tempdir().unwrap();
    let export = folder.path();
    fails(&runs(&eve, &export.join("none"), &["--project", "shop", "pull"]), "reading ");
    fails(&runs(&eve, Path::new("s3://a/b"), &["--project", "shop", "pull"]), "must be s3://");
    exports(&world, export, Checkpoint::START).await;
    runs(&eve, export, &["--project", "shop", "pull"]).ends(0);
    let text = eve.text("events.jsonl");

    let changed = World::start().await;
    changed.single();
    changed.agent("primary").creates("PAY");
    let others = tempfile::tempdir().unwrap();
    exports(&changed, others.path(), Checkpoint::START).await;
    fails(&runs(&eve, others.path(), &["pull"]), "IndexChanged");
    assert_eq!(eve.text("events.jsonl"), text);

    let empty = tempfile::tempdir().unwrap();
    fails(
        &runs(&eve, empty.path(), &["reconstruct"]),
        "the export has no project shop; it has none at all",
    );
    assert_eq!(eve.text("events.jsonl"), text);

    eve.creates("PAY");
    exports(&world, export, Checkpoint::START).await;
    for entry in fs::read_dir(export.join("shop")).unwrap() {
        let path = entry.unwrap().path();
        let segment = fs::read_to_string(&path).unwrap();
        fs::write(&path, segment.replace("PAY", "PAX")).unwrap();
    }
    fails(&runs(&eve, export, &["pull"]), "is damaged");
    assert_eq!(eve.text("events.jsonl"), text);
}
