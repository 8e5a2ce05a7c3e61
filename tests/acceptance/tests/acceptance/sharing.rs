//! Projects as their users see them: agents and a state machine share work over HTTP.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join;
use projects::LEASE_MS_MIN;
use projects::exchange::SegmentName;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::PROJECTS;
use crate::binaries::{Api, start};
use crate::contract::run_machine;

#[tokio::test(flavor = "multi_thread")]
async fn the_walk_through_a_project_succeeds_leases_end_and_a_state_machine_shares_work() {
    let (stack, _folder) = start(PROJECTS).await;
    projects_tools::walk(&stack).await.unwrap();
    let api = Api::of(stack);
    join(leases_end(&api), a_state_machine_shares_work(&api)).await;
    each_project_is_exported_into_its_folder(&api).await;
}

/// The types of the events in an accepted command's answer.
#[track_caller]
fn types((status, answer): (u16, Value)) -> Vec<String> {
    assert_eq!(status, 200, "{answer}");
    let events = answer["events"].as_array().unwrap().iter();
    events.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

/// A project in multi mode, with these features of one edge.
async fn begin(api: &Api, project: &str, lease_ms: u64, features: &[&str]) {
    let config = json!({
        "mode": "multi", "leaseMs": lease_ms, "edges": [{ "edge": "design_code" }],
        "roles": { "eve": "human", "ada": "coder", "bob": "coder", "carl": "coder" },
        "authority": { "coder": { "edges": ["design_code"] } },
    });
    let init = json!({ "project": project, "agent": "eve", "config": config });
    assert_eq!(types(api.project("init-project", &init).await), ["ProjectInitialized"]);
    for feature in features {
        let feature = format!("{project}/{feature}");
        let create =
            json!({ "feature": feature, "agent": "eve", "title": "Work", "kind": "feature" });
        assert_eq!(types(api.project("create-feature", &create).await), ["FeatureCreated"]);
    }
}

/// The shortest lease: another agent takes over the edge, and an unwanted claim ends by itself.
async fn leases_end(api: &Api) {
    begin(api, "lease", LEASE_MS_MIN, &["REQ-F-TAKEN-001", "REQ-F-LEFT-001"]).await;
    let edge = |name: &str| format!("lease/REQ-F-{name}-001/design_code");
    let claim = |name: &str, agent: &str| json!({ "edge": edge(name), "agent": agent, "claim": format!("{agent}-1") });
    for name in ["TAKEN", "LEFT"] {
        assert_eq!(types(api.project("claim-edge", &claim(name, "ada")).await), ["EdgeStarted"]);
    }
    let taken = loop {
        let (status, answer) = api.project("claim-edge", &claim("TAKEN", "bob")).await;
        if status == 200 {
            break types((status, answer));
        }
        assert_eq!((status, &answer["code"]), (422, &json!("EdgeHeld")), "{answer}");
        assert_eq!((&answer["holder"], &answer["hold"]), (&json!("ada"), &json!("current")));
        sleep(Duration::from_millis(500)).await;
    };
    assert_eq!(taken, ["ClaimExpired", "EdgeStarted"]);
    let renew = json!({ "edge": edge("TAKEN"), "agent": "ada", "claim": "ada-1" });
    let (status, answer) = api.project("renew-claim", &renew).await;
    assert_eq!((status, &answer["code"]), (422, &json!("StaleClaim")), "{answer}");
    // The sweep runs each minute, and the test does not wait for it.
    let row = format!("{}/project-claims/{}", api.stack.api(), edge("LEFT"));
    loop {
        api.stack.invoke("projects-fire-deadlines", &json!({})).await.unwrap();
        let answer = api.client.get(&row).send().await.unwrap();
        let row: Value = answer.json().await.unwrap();
        if row["row"]["expired"] == true {
            break;
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// An agent claims an edge and spawns three children. Others do their work, and the agent folds them back.
async fn a_state_machine_shares_work(api: &Api) {
    let features = ["REQ-F-WHOLE-001", "REQ-F-WHOLE-002", "REQ-F-PART-004"];
    begin(api, "shared", 3_600_000, &features).await;
    let template = crate::template_of(PROJECTS).model("").unwrap();
    let functions = template.functions.iter().map(|it| (it.id.clone(), json!(it.binary)));
    let functions: Value = functions.collect::<serde_json::Map<_, _>>().into();
    let child = |n: usize, agent: &str| json!({ "name": format!("REQ-F-PART-00{n}"), "title": "Part", "agent": agent });
    let input = json!({
        "project": "shared", "feature": "REQ-F-WHOLE-001", "edge": "design_code", "agent": "eve",
        "edges": ["design_code"],
        "children": [child(1, "ada"), child(2, "bob"), child(3, "carl")],
    });
    let whole = "shared/REQ-F-WHOLE-001/design_code";
    let held = json!({ "edge": whole, "agent": "bob", "claim": "b1" });
    assert_eq!(types(api.project("claim-edge", &held).await), ["EdgeStarted"]);
    let lambda = api.stack.lambda();
    // The rejection is an error, which is retried and then caught by its name. Its cause is the problem document.
    let Some((ended, tried)) = run_machine(lambda, &functions, "run-1", &input).await else {
        return;
    };
    assert_eq!(tried, ["Claim"; 4]);
    let cause = ended.as_str().unwrap();
    assert!(
        cause.contains(r#""code":"EdgeHeld""#) && cause.contains(r#""holder":"bob""#),
        "{cause}"
    );

    let release = json!({ "edge": whole, "agent": "bob", "claim": "b1", "reason": "enough" });
    assert_eq!(types(api.project("release-edge", &release).await), ["EdgeReleased"]);
    let (ended, tried) = run_machine(lambda, &functions, "run-2", &input).await.unwrap();
    assert_eq!(ended, Value::Null, "{tried:?}");
    let of = |task: &str| tried.iter().filter(|tried| *tried == task).count();
    let all = ["SpawnChild", "ClaimChild", "Report", "ConvergeChild", "FoldChild"].map(of);
    assert!(all.iter().all(|tries| *tries >= 3), "{tried:?}");
    let again = json!({ "edge": whole, "agent": "eve", "claim": "late" });
    let (status, answer) = api.project("claim-edge", &again).await;
    assert_eq!((status, &answer["code"]), (422, &json!("AlreadyConverged")), "{answer}");
    // Another agent has the edge of the only child. The parent's edge is free again.
    let of_child =
        json!({ "edge": "shared/REQ-F-PART-004/design_code", "agent": "bob", "claim": "b2" });
    assert_eq!(types(api.project("claim-edge", &of_child).await), ["EdgeStarted"]);
    let mut input = input;
    input["feature"] = json!("REQ-F-WHOLE-002");
    input["children"] = json!([child(4, "ada")]);
    let (ended, tried) = run_machine(lambda, &functions, "run-3", &input).await.unwrap();
    assert!(ended.as_str().unwrap().contains(r#""code":"EdgeHeld""#), "{ended}");
    assert_eq!(tried, ["Claim", "SpawnChild", "ClaimChild", "Release"]);
    let free =
        json!({ "edge": "shared/REQ-F-WHOLE-002/design_code", "agent": "carl", "claim": "c1" });
    assert_eq!(types(api.project("claim-edge", &free).await), ["EdgeStarted"]);

    let release = json!({
        "project": "shared", "version": "1.0.0", "agent": "eve", "notes": "all of it",
        "features": ["shared/REQ-F-WHOLE-001", "shared/REQ-F-PART-001", "shared/REQ-F-PART-003"],
    });
    assert_eq!(types(api.project("create-release", &release).await), ["ReleaseCreated"]);
}

/// The bucket has a folder for each project, and each run continues after the previous one.
async fn each_project_is_exported_into_its_folder(api: &Api) {
    let export = async || api.stack.invoke("export-projects", &json!({})).await.unwrap();
    // The schedule may have exported some already.
    export().await;
    let buckets = api.stack.buckets();
    let bucket = buckets.names().iter().find(|name| name.contains("ExportBucket")).unwrap();
    let keys: Vec<_> = buckets.list(bucket).unwrap().into_iter().map(|it| it.key).collect();
    let folders: BTreeSet<_> = keys.iter().filter_map(|key| key.split_once('/')).collect();
    let projects: BTreeSet<_> = folders.iter().map(|(project, _)| *project).collect();
    assert_eq!(projects, ["lease", "shared", "shop"].into());
    let mut lines = 0;
    for (project, name) in folders {
        let segment = buckets.get(bucket, &format!("{project}/{name}")).unwrap();
        let segment = String::from_utf8(segment).unwrap();
        assert!(SegmentName::parse(name).unwrap().is_of(&segment), "{name}");
        let of = format!("\"project\":\"{project}\"");
        assert!(segment.lines().all(|line| line.contains(&of)), "{name}");
        lines += segment.lines().count();
    }
    assert!(lines > 30, "{lines}");
    // The next run continues after the cursor. The index may get an event after its command is answered.
    begin(api, "late", 3_600_000, &[]).await;
    let is_late = |key: &str| key.starts_with("late/");
    while !buckets.list(bucket).unwrap().iter().any(|it| is_late(&it.key)) {
        export().await;
        sleep(Duration::from_millis(100)).await;
    }
}
