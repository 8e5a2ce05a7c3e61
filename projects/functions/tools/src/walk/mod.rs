//! A walk through a project that two agents share: each request, its answer, and each event on the topic. It ends with
//! an error at the first thing that is wrong.

mod agent;

use anyhow::{Result, ensure};
use futures::future::LocalBoxFuture;
use ringfence_local::stack::RunningStack;
use ringfence_local::walker::{HttpAnswer, Walker, expect_accepted, expect_rejected, title};
use serde_json::{Value, json};

use self::agent::Agent;

const AUTH: &str = "shop/REQ-F-AUTH-001";
const SEARCH: &str = "shop/REQ-F-SEARCH-001";
const PAY: &str = "shop/REQ-F-PAY-001";
/// The hash of an empty file: the agents had no instructions.
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Walks through a project on a stack that nobody else uses.
///
/// # Errors
/// An answer or an event is wrong or does not come.
pub fn walk(stack: &RunningStack) -> LocalBoxFuture<'_, Result<()>> {
    Box::pin(async move {
        let walker = &mut Walker::new(stack, "operator", &[])?;
        share_a_project(walker).await?;
        claim_edges(walker).await?;
        work_offline(walker).await?;
        walker.expect_quiet().await
    })
}

/// The one edge of a feature.
fn edge(feature: &str) -> String {
    format!("{feature}/design_code")
}

async fn share_a_project(walker: &mut Walker<'_>) -> Result<()> {
    title("A project of two agents and a person, and three features; one waits for another");
    let config = json!({
        "mode": "multi",
        "edges": [{ "edge": "design_code" }],
        "roles": { "eve": "human", "ada": "coder", "bob": "coder" },
        "authority": { "coder": { "edges": ["design_code"] } },
    });
    let init = json!({ "project": "shop", "agent": "eve", "config": config });
    expect_accepted(&walker.post("/projects/init-project", &init).await?, "ProjectInitialized")?;
    for (feature, dependencies) in [(AUTH, json!([])), (SEARCH, json!([])), (PAY, json!([AUTH]))] {
        let command = json!({
            "feature": feature, "agent": "eve", "title": "What it does", "kind": "feature",
            "dependencies": dependencies,
        });
        expect_accepted(
            &walker.post("/projects/create-feature", &command).await?,
            "FeatureCreated",
        )?;
    }
    walker.expect_events(&[("ProjectInitialized", 1), ("FeatureCreated", 3)]).await
}

async fn claim_edges(walker: &mut Walker<'_>) -> Result<()> {
    title(
        "Both want the same edge at once: one gets it, and the answer to the other names the holder",
    );
    let claim =
        |agent: &str| json!({ "edge": edge(AUTH), "agent": agent, "claim": format!("{agent}-1") });
    let answers =
        walker.post_at_once("/projects/claim-edge", &[claim("ada"), claim("bob")]).await?;
    let granted = answers.iter().filter(|(status, _)| *status == 200).count();
    ensure!(granted == 1, "{granted} agents hold the edge");
    let rejected: Vec<&HttpAnswer> = answers.iter().filter(|(status, _)| *status != 200).collect();
    expect_rejected(rejected[0], "EdgeHeld")?;
    walker.expect_events(&[("EdgeStarted", 1), ("ClaimRejected", 1)]).await?;

    title("A person takes the edge back; the next claim has epoch 2, and the first holder is late");
    let holder = rejected[0].1["holder"].as_str().unwrap_or_default().to_owned();
    let next = if holder == "ada" { "bob" } else { "ada" };
    let force = json!({ "edge": edge(AUTH), "agent": "eve", "reason": "on holiday" });
    expect_accepted(&walker.post("/projects/force-release", &force).await?, "EdgeReleased")?;
    let again = json!({ "edge": edge(AUTH), "agent": next, "claim": "second" });
    expect_accepted(&walker.post("/projects/claim-edge", &again).await?, "EdgeStarted")?;
    let late = iterate(walker, AUTH, &holder, &format!("{holder}-1")).await?;
    expect_rejected(&late, "StaleClaim")?;
    walker.expect_events(&[("EdgeReleased", 1), ("EdgeStarted", 1)]).await?;

    title("Edges that wait for the feature can be claimed when it is done");
    let early = json!({
        "edge": edge(PAY), "agent": "ada", "claim": "early", "after": [AUTH],
    });
    expect_rejected(&walker.post("/projects/claim-edge", &early).await?, "WaitsFor")?;
    expect_accepted(&iterate(walker, AUTH, next, "second").await?, "IterationCompleted")?;
    let converge = json!({
        "edge": edge(AUTH), "agent": next, "claim": "second", "convergence": "standard",
    });
    expect_accepted(&walker.post("/projects/converge-edge", &converge).await?, "EdgeConverged")?;
    expect_accepted(&walker.post("/projects/claim-edge", &early).await?, "EdgeStarted")?;
    let events = [("IterationCompleted", 1), ("EdgeConverged", 1), ("EdgeStarted", 1)];
    walker.expect_events(&events).await
}

async fn work_offline(walker: &mut Walker<'_>) -> Result<()> {
    title(
        "Bob works at the command line, without a network, and sends his work later; his copy can be\n\
         made again, byte for byte",
    );
    let bob = Agent::new(walker.stack(), "bob").await?;
    let of = edge(SEARCH);
    bob.pulls_until("edge_started", &edge(PAY)).await?;
    let ready = bob.runs(&["ready"], 0).await?;
    ensure!(ready.contains(&of), "{of} is not ready");
    let claimed: Value = serde_json::from_str(&bob.runs(&["claim", "--next"], 0).await?)?;
    ensure!(claimed["edge"] == *of, "he got {}", claimed["edge"]);
    bob.runs(&["claim", &edge(PAY)], 1).await?;
    walker.expect_events(&[("EdgeStarted", 1), ("ClaimRejected", 1)]).await?;
    bob.pulls_until("edge_started", &of).await?;
    let iteration = json!({
        "edge": of, "iteration": 1, "status": "converged", "delta": 0, "checks": [],
        "sourceFindings": [], "processGaps": [], "contextHash": NOTHING,
    });
    let converge = json!({ "edge": of, "convergence": "standard" });
    for (slice, data) in [("complete-iteration", iteration), ("converge-edge", converge)] {
        bob.runs(&["do", slice, "--offline", "--data", &data.to_string()], 0).await?;
    }
    bob.runs(&["push"], 0).await?;
    walker.expect_events(&[("IterationCompleted", 1), ("EdgeConverged", 1)]).await?;
    bob.pulls_until("edge_converged", &of).await?;
    let copy = bob.events()?;
    bob.runs(&["reconstruct"], 0).await?;
    ensure!(bob.events()? == copy, "the new copy differs from the old one");
    Ok(())
}

/// Reports a converged iteration.
async fn iterate(
    walker: &mut Walker<'_>,
    feature: &str,
    agent: &str,
    claim: &str,
) -> Result<HttpAnswer> {
    let check: Value = json!({ "name": "it compiles", "required": true, "passed": true });
    let command = json!({
        "edge": edge(feature), "agent": agent, "claim": claim, "iteration": 1,
        "status": "converged", "delta": 0, "checks": [check], "sourceFindings": [],
        "processGaps": [], "contextHash": NOTHING,
    });
    walker.post("/projects/complete-iteration", &command).await
}
