//! Commands without a network, which wait and are sent later.

use std::fs;

use serde_json::{Value, json};

use crate::world::{Agent, Fault, Ran, World, edge, feature, fix, iteration};

fn slices(outbox: &[Value]) -> Vec<&str> {
    outbox.iter().map(|queued| queued["slice"].as_str().unwrap()).collect()
}

/// Claims an edge of this feature offline.
fn claims_offline(primary: &Agent<'_>, feature: &str) -> String {
    let of = edge(feature, "design_code");
    primary.runs(&["claim", &of, "--offline"]).ends(0);
    of
}

/// Claims, works and converges offline.
fn works_offline(primary: &Agent<'_>) -> String {
    let of = &claims_offline(primary, "AUTH");
    primary.does_offline("complete-iteration", &iteration(of, 1)).ends(0);
    let converge = json!({ "edge": of, "convergence": "standard" });
    primary.does_offline("converge-edge", &converge).ends(0);
    of.clone()
}

/// The work on edges that the stack has.
fn worked(world: &World) -> Vec<String> {
    let reader = world.agent("reader");
    reader.pulls();
    reader.types().split_off(3)
}

const WORK: [&str; 3] = ["edge_started", "iteration_completed", "edge_converged"];

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_offline_is_decided_here_and_sent_later_with_its_time() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    let older = world.agent("reader");
    older.pulls();
    world.requests();
    let of = works_offline(&primary);
    let outbox = primary.lines("outbox.jsonl");
    assert_eq!(slices(&outbox), ["claim-edge", "complete-iteration", "converge-edge"]);
    assert_eq!(outbox[0]["data"]["claim"], outbox[1]["data"]["claim"]);
    // A command that is rejected here does not wait.
    let rejected = primary.runs(&["claim", &of, "--offline"]).ends(1);
    assert_eq!(rejected["code"], "AlreadyConverged");
    assert_eq!(primary.lines("outbox.jsonl").len(), 3);
    assert_eq!(world.requests(), [""; 0]);

    let pushed = primary.runs(&["push"]);
    pushed.ends(0);
    assert_eq!(pushed.stdout, "3 accepted, 0 rejected, 0 put aside with them, 0 wait\n");
    assert_eq!(primary.text("outbox.jsonl"), "");
    older.pulls();
    let lines = older.lines("events.jsonl").split_off(3);
    for (line, queued) in lines.iter().zip(&outbox) {
        assert_eq!(line["meta"]["effectiveAt"], queued["effectiveAt"]);
    }
    assert_eq!(older.types().split_off(3), WORK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_ends_at_any_step_is_repeated_and_takes_effect_once() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    works_offline(&primary);
    let queued = primary.text("outbox.jsonl");
    let busy = [503, 504, 409, 429].map(Fault::Refuses);
    for fault in busy.into_iter().chain([Fault::Loses]) {
        world.fails([fault]);
        let pushed = primary.runs(&["push"]);
        pushed.ends(1);
        assert_eq!(pushed.stdout, "0 accepted, 0 rejected, 0 put aside with them, 3 wait\n");
    }
    world.fails([Fault::Refuses(403)]);
    let denied = primary.runs(&["push"]);
    denied.ends(2);
    assert!(
        denied.stderr.contains("claim-edge: 403 status 403; 3 commands wait"),
        "{}",
        denied.stderr
    );
    assert_eq!(primary.text("outbox.jsonl"), queued);
    // The first answers are noted, the next one is lost.
    for done in 0..3 {
        fs::write(primary.path("outbox.jsonl"), &queued).unwrap();
        world.fails([Fault::Refuses(503)]);
        primary.runs(&["push"]).ends(1);
        let lines: Vec<&str> = queued.split_inclusive('\n').collect();
        fs::write(primary.path("outbox.jsonl"), lines[..=done].concat()).unwrap();
        primary.runs(&["push"]).ends(0);
        assert_eq!(worked(&world), WORK[..=done], "{done}");
    }
    fs::write(primary.path("outbox.jsonl"), &queued).unwrap();
    primary.runs(&["push"]).ends(0);
    assert_eq!(worked(&world), WORK);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_an_answer_is_on_its_way_others_work_in_the_folder_and_one_pushes() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    let of = claims_offline(&primary, "AUTH");
    world.requests();
    world.fails([Fault::Waits]);
    let pushes = primary.command(&["push"]).spawn().unwrap();
    world.awaits_request();
    primary.runs(&["status"]).ends(0);
    primary.does_offline("complete-iteration", &iteration(&of, 1)).ends(0);
    let second = primary.runs(&["push"]);
    second.ends(2);
    assert!(second.stderr.contains("another program holds "), "{}", second.stderr);
    world.goes_on();
    let pushed = Ran::of(pushes.wait_with_output().unwrap());
    pushed.ends(0);
    assert_eq!(pushed.stdout, "2 accepted, 0 rejected, 0 put aside with them, 0 wait\n");
    assert_eq!(primary.text("outbox.jsonl"), "");
    assert_eq!(worked(&world), WORK[..2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_something_before_the_stack_answers_moves_no_command() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    claims_offline(&primary, "AUTH");
    let queued = primary.text("outbox.jsonl");
    for status in [200, 400, 413, 422] {
        world.fails([Fault::Breaks(status)]);
        let pushed = primary.runs(&["push"]);
        pushed.ends(2);
        let expected = format!("claim-edge: the stack did not answer: {status}");
        assert!(pushed.stderr.contains(&expected), "{}", pushed.stderr);
        assert_eq!(primary.text("outbox.jsonl"), queued, "{status}");
    }
    // The gateway has not passed the command on, or may have done so.
    world.fails([Fault::Breaks(422), Fault::Breaks(200)]);
    primary.does("create-feature", &fix("PAY")).ends(2);
    assert_eq!(primary.text("outbox.jsonl"), queued);
    primary.does("create-feature", &fix("PAY")).ends(0);
    assert_eq!(primary.lines("outbox.jsonl").len(), 2);
    primary.runs(&["push"]).ends(0);
    assert_eq!(worked(&world).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_command_goes_to_conflicts_with_the_later_ones_of_its_edge() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    let work = |of: &str, number| {
        primary.does_offline("complete-iteration", &iteration(of, number)).ends(0);
    };
    let of = claims_offline(&primary, "AUTH");
    work(&of, 1);
    let other = claims_offline(&primary, "SEARCH");
    work(&of, 2);
    work(&other, 1);
    let queued = primary.text("outbox.jsonl");
    // Another copy of the project was faster.
    let faster = world.agent("primary");
    faster.runs(&["claim", &of]).ends(0);
    let pushed = primary.runs(&["push"]);
    pushed.ends(1);
    assert!(
        pushed.stdout.starts_with("rejected  claim-edge: primary holds the edge"),
        "{}",
        pushed.stdout
    );
    let end = "2 accepted, 1 rejected, 2 put aside with them, 0 wait\n";
    assert!(pushed.stdout.ends_with(end), "{}", pushed.stdout);
    let conflicts = primary.conflicts();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0]["answer"]["code"], "EdgeHeld");
    assert_eq!(conflicts[0]["command"]["slice"], "claim-edge");
    assert_eq!(slices(conflicts[0]["later"].as_array().unwrap()), ["complete-iteration"; 2]);
    // If the program had ended before the outbox was written, nothing would be sent again.
    fs::write(primary.path("outbox.jsonl"), &queued).unwrap();
    world.requests();
    primary.runs(&["push"]).ends(0);
    assert_eq!(world.requests(), ["claim-edge", "complete-iteration"]);
    assert_eq!(worked(&world), ["edge_started", "edge_started", "iteration_completed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_command_under_its_old_key_is_rejected() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    let of = claims_offline(&primary, "AUTH");
    primary.does_offline("complete-iteration", &iteration(&of, 1)).ends(0);
    let queued = primary.text("outbox.jsonl");
    primary.runs(&["push"]).ends(0);
    let edited = queued.replace("\"contextHash\":\"0a", "\"contextHash\":\"0b");
    fs::write(primary.path("outbox.jsonl"), edited).unwrap();
    primary.runs(&["push"]).ends(1);
    let conflicts = primary.conflicts();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0]["answer"]["code"], "IdempotencyKeyReused");
    assert_eq!(worked(&world), WORK[..2]);
    fs::write(primary.path("outbox.jsonl"), "{}\n").unwrap();
    let wrong = primary.runs(&["push"]);
    wrong.ends(2);
    let expected = "line 1 of .ringfence/shop/outbox.jsonl is not a command (`data` is missing): ";
    assert!(wrong.stderr.contains(expected), "{}", wrong.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_an_answer_waits_under_its_key() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    world.fails([Fault::Loses]);
    let _ = world.requests();
    // Meanwhile another program works in the folder for longer than others wait for it.
    let ran = std::thread::scope(|threads| {
        threads.spawn(|| {
            world.awaits_request();
            let lock = fs::File::open(primary.path("lock")).unwrap();
            lock.lock().unwrap();
            // A program that has sent nothing waits once, and says so.
            let next = primary.runs(&["claim", "--next"]);
            next.ends(2);
            assert!(next.stderr.starts_with("error: another program holds "), "{}", next.stderr);
        });
        primary.does("create-feature", &fix("PAY"))
    });
    let queued = ran.ends(0);
    assert!(ran.stderr.contains("502 without JSON"), "{}", ran.stderr);
    assert_eq!(primary.lines("outbox.jsonl")[0]["key"], queued["queued"]);
    primary.runs(&["push"]).ends(0);
    assert_eq!(worked(&world), ["feature_created"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_connection_a_command_is_decided_here() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    let unreachable = |arguments: &[&str]| {
        let mut command = primary.command(arguments);
        Ran::of(command.env("API_URL", "http://127.0.0.1:1").output().unwrap())
    };
    let create = |kind: &str| {
        let data = json!({ "feature": feature("PAY"), "title": "PAY", "kind": kind });
        unreachable(&["do", "create-feature", "--data", &data.to_string()])
    };
    let malformed = create("nothing");
    malformed.ends(2);
    assert!(malformed.stderr.contains("the command is decided here"), "{}", malformed.stderr);
    let kinds = "malformed: kind: has an unknown value; the values are feature, fix, ";
    assert!(malformed.stderr.contains(kinds), "{}", malformed.stderr);
    create("fix").ends(0);
    assert_eq!(create("fix").ends(1)["code"], "FeatureExists");
    let unknown = unreachable(&["claim", "shop/REQ-F-TYPO-001/design_code"]);
    assert_eq!(unknown.ends(1)["code"], "UnknownFeature");
    assert_eq!(slices(&primary.lines("outbox.jsonl")), ["create-feature"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_many_agents_work_nobody_claims_an_edge_offline() {
    let world = World::start().await;
    world.multi();
    let ada = world.agent("ada");
    ada.pulls();
    let ran = ada.runs(&["claim", &edge("AUTH", "design_code"), "--offline"]);
    ran.ends(2);
    assert!(ran.stderr.contains("only in single mode"), "{}", ran.stderr);
    assert_eq!(ada.text("outbox.jsonl"), "");
    // Work under a claim can wait.
    ada.runs(&["claim", &edge("AUTH", "design_code")]).ends(0);
    ada.pulls();
    let done = iteration(&edge("AUTH", "design_code"), 1);
    ada.does_offline("complete-iteration", &done).ends(0);
    ada.runs(&["push"]).ends(0);
    // If the answer is lost, the error says where to look.
    world.fails([Fault::Loses]);
    let claim = json!({ "edge": edge("SEARCH", "design_code"), "claim": "ada-1" });
    let lost = ada.does("claim-edge", &claim);
    lost.ends(2);
    assert!(lost.stderr.contains("may have taken effect, as claim ada-1: "), "{}", lost.stderr);
    // Nor can a claim be ended offline that may be another agent's by then.
    let forced = json!({ "edge": edge("AUTH", "design_code"), "reason": "gone" });
    let ran = ada.does_offline("force-release", &forced);
    ran.ends(2);
    assert!(ran.stderr.contains("only in single mode"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_outcome_the_stack_does_not_know_waits() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    world.fails([Fault::Refuses(503), Fault::Refuses(504)]);
    primary.does("create-feature", &fix("PAY")).ends(2);
    assert_eq!(primary.text("outbox.jsonl"), "");
    primary.does("create-feature", &fix("PAY")).ends(0);
    assert_eq!(primary.lines("outbox.jsonl").len(), 1);
    world.fails([Fault::Breaks(503)]);
    primary.does("create-feature", &fix("FIX")).ends(0);
    assert_eq!(primary.lines("outbox.jsonl").len(), 2);
    // A misspelt slice in the file has no effect here.
    let queued = primary.text("outbox.jsonl");
    let edited = queued.replace("create-feature", "create-features");
    fs::write(primary.path("outbox.jsonl"), edited + &queued).unwrap();
    claims_offline(&primary, "PAY");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_was_sent_waits_although_the_copy_is_too_old_for_it() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    let of = edge("AUTH", "design_code");
    let claimed = primary.runs(&["claim", &of]).ends(0);
    let text = primary.text("events.jsonl");
    primary.pulls();
    primary.does("complete-iteration", &iteration(&of, 1)).ends(0);
    // The copy knows neither the claim nor the iteration.
    fs::write(primary.path("events.jsonl"), text).unwrap();
    world.fails([Fault::Loses]);
    let converge = json!({ "edge": of, "claim": claimed["claim"], "convergence": "standard" });
    let queued = primary.does("converge-edge", &converge).ends(0);
    assert_eq!(primary.lines("outbox.jsonl")[0]["key"], queued["queued"]);
    // Later commands about the edge do not overtake it.
    let reopen = json!({ "edge": of, "reason": "again" });
    let overtakes = primary.does("reopen-edge", &reopen);
    overtakes.ends(2);
    assert!(overtakes.stderr.contains("earlier commands about shop/"), "{}", overtakes.stderr);
    primary.runs(&["push"]).ends(0);
    assert_eq!(worked(&world).last().map(|it| it.as_str()), Some("edge_converged"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_put_aside_does_not_come_back() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    claims_offline(&primary, "AUTH");
    let queued = primary.text("outbox.jsonl");
    world.fails([Fault::Refuses(422)]);
    primary.runs(&["push"]).ends(1);
    // The program had ended before the outbox was written.
    fs::write(primary.path("outbox.jsonl"), queued).unwrap();
    primary.runs(&["push"]).ends(0);
    fs::remove_dir_all(primary.path("conflicts")).unwrap();
    assert_eq!(primary.text("outbox.jsonl"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_field_is_named_and_no_project_leaves_its_folder() {
    let world = World::start().await;
    let primary = world.single_with_copy();
    let mut wrong = iteration(&edge("AUTH", "design_code"), 1);
    wrong["contextHash"] = json!("short");
    wrong["claim"] = json!("c");
    let ran = primary.does_offline("complete-iteration", &wrong);
    ran.ends(2);
    assert!(ran.stderr.contains("contextHash: "), "{}", ran.stderr);
    let ran = primary.runs(&["--project", "..", "log"]);
    ran.ends(2);
    assert!(ran.stderr.contains("take another name"), "{}", ran.stderr);
}
