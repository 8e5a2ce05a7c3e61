//! The cases of claims.

use ringfence::kit::BEGIN_MS;
use ringfence::prelude::*;

use crate::claim_edge::{ClaimEdge, Claimed};
use crate::facts::*;
use crate::{
    ClaimExpired, ClaimRejected, DetectedBy, EdgeRef, EdgeStarted, FeatureCreated, FeatureRef,
    GRACE_MS, Hold, LEASE_MS, OnExpiry, REVIEW_MS, Rejection, Rules,
};

fn claim(agent: &str, claim: &str) -> ClaimEdge {
    let (edge, agent, claim) = (id(DESIGN_CODE), id(agent), id(claim));
    ClaimEdge { edge, agent, claim, after: Default::default() }
}

fn after(command: ClaimEdge, on: &[&str]) -> ClaimEdge {
    let on: Vec<FeatureRef> = on.iter().map(|on| id(on)).collect();
    ClaimEdge { after: on.try_into().expect("few"), ..command }
}

fn granted(agent: &str, claim: &str, epoch: u64) -> Claimed {
    Claimed::Started(started(agent, claim, epoch))
}

fn expired(agent: &str, claim: &str, epoch: u64, lease_until_ms: u64) -> Claimed {
    Claimed::Expired(ClaimExpired {
        lease_until_ms,
        detected_by: DetectedBy::Takeover,
        ..claim_expired(agent, claim, epoch)
    })
}

fn held_until(lease_until_ms: u64) -> Rejection {
    held_as(Hold::Current, lease_until_ms)
}

fn held_as(hold: Hold, lease_until_ms: u64) -> Rejection {
    let lease_until_ms = Some(lease_until_ms);
    Rejection::EdgeHeld { holder: id("ada"), claim: id("c1"), epoch: 1, hold, lease_until_ms }
}

fn told(agent: &str, lease_until_ms: u64) -> Claimed {
    Claimed::Rejected(ClaimRejected {
        edge: id(DESIGN_CODE),
        agent: id(agent),
        holder: id("ada"),
        claim: id("c1"),
        epoch: 1,
        lease_until_ms: Some(lease_until_ms),
    })
}

/// Events of one moment have times that differ by a millisecond each. A wait makes the time of a claim exact.
const MINUTE_MS: u64 = 60_000;

/// When a lease is over that began a minute after the case.
const UNTIL: u64 = BEGIN_MS + MINUTE_MS + LEASE_MS;

pub(crate) fn cases() -> Vec<Case<ClaimEdge>> {
    [free(), held(), overdue(), first()].into_iter().flatten().collect()
}

/// Nobody holds the edge.
fn free() -> Vec<Case<ClaimEdge>> {
    let signal_only = || Rules { on_expiry: OnExpiry::SignalOnly, ..multi().rules() };
    vec![
        given(ready()).when(claim("ada", "c1")).then([granted("ada", "c1", 1)]),
        given(ready()).when(claim("ada", "c1")).by("key-1").then([Claimed::Started(EdgeStarted {
            principal: Some("key-1".to_owned()),
            ..started("ada", "c1", 1)
        })]),
        given(ready())
            .and(events![started("ada", "c1", 1), released("ada", "c1")])
            .when(claim("bob", "c2"))
            .then([granted("bob", "c2", 2)]),
        // The schedule has seen that the lease was over.
        given(ready())
            .and(events![started("ada", "c1", 1), claim_expired("ada", "c1", 1)])
            .when(claim("bob", "c2"))
            .then([granted("bob", "c2", 2)]),
        // Such a claim bars others if the project says so, until a person releases it.
        given(ready_under(signal_only()))
            .wait(MINUTE_MS)
            .and(events![started("ada", "c1", 1), claim_expired("ada", "c1", 1)])
            .when(claim("bob", "c2"))
            .then_rejected_leaving(held_as(Hold::Over, UNTIL), [told("bob", UNTIL)]),
        // The agent itself can't go on under it either.
        given(ready_under(signal_only()))
            .wait(MINUTE_MS)
            .and(events![started("ada", "c1", 1), claim_expired("ada", "c1", 1)])
            .when(claim("ada", "c2"))
            .then_rejected_leaving(held_as(Hold::Over, UNTIL), [told("ada", UNTIL)]),
        given(ready_under(signal_only()))
            .and(events![
                started("ada", "c1", 1),
                claim_expired("ada", "c1", 1),
                released("ada", "c1")
            ])
            .when(claim("bob", "c2"))
            .then([granted("bob", "c2", 2)]),
        // A new run begins where a converged edge was opened again.
        given(ready())
            .and(events![started("ada", "c1", 1), converged(DESIGN_CODE, "c1"), reopened(2)])
            .when(claim("bob", "c2"))
            .then([Claimed::Started(EdgeStarted { run: 2, ..started("bob", "c2", 2) })]),
        // In single mode the lease has no end, and nobody else takes part.
        given(ready_under(single().rules())).when(claim("primary", "c1")).then([Claimed::Started(
            EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) },
        )]),
        given(ready_under(single().rules()))
            .when(claim("ada", "c1"))
            .then_rejected(Rejection::SingleMode),
        given(ready_under(single().rules()))
            .and(events![EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) }])
            .wait(100 * LEASE_MS)
            .when(claim("primary", "c2"))
            .then_rejected(Rejection::EdgeHeld {
                holder: id("primary"),
                claim: id("c1"),
                epoch: 1,
                hold: Hold::Yours,
                lease_until_ms: None,
            }),
        // A feature whose project has changed to multi mode keeps its holder.
        given(ready())
            .and(events![EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) }])
            .wait(100 * LEASE_MS)
            .when(claim("primary", "c1"))
            .then_nothing(),
    ]
}

/// Somebody holds it.
fn held() -> Vec<Case<ClaimEdge>> {
    let by_ada = || given(ready()).wait(MINUTE_MS).and(events![started("ada", "c1", 1)]);
    vec![
        by_ada().when(claim("ada", "c1")).then_nothing(),
        by_ada()
            .when(claim("bob", "c2"))
            .then_rejected_leaving(held_until(UNTIL), [told("bob", UNTIL)]),
        // It is told once for each claim and agent.
        by_ada()
            .and(events![ClaimRejected {
                edge: id(DESIGN_CODE),
                agent: id("bob"),
                holder: id("ada"),
                claim: id("c1"),
                epoch: 1,
                lease_until_ms: Some(UNTIL),
            }])
            .when(claim("bob", "c2"))
            .then_rejected(held_until(UNTIL)),
        // What another agent was told does not count.
        by_ada()
            .and(events![ClaimRejected {
                edge: id(DESIGN_CODE),
                agent: id("carl"),
                holder: id("ada"),
                claim: id("c1"),
                epoch: 1,
                lease_until_ms: Some(UNTIL),
            }])
            .when(claim("bob", "c2"))
            .then_rejected_leaving(held_until(UNTIL), [told("bob", UNTIL)]),
        // The id of another's claim, of the same agent under another caller, and of a claim that is over.
        by_ada().when(claim("bob", "c1")).then_rejected(Rejection::ClaimIdUsed { claim: id("c1") }),
        by_ada()
            .when(claim("ada", "c1"))
            .by("key-1")
            .then_rejected(Rejection::ClaimIdUsed { claim: id("c1") }),
        by_ada()
            .and(events![released("ada", "c1")])
            .when(claim("ada", "c1"))
            .then_rejected(Rejection::ClaimIdUsed { claim: id("c1") }),
        // Its own holder gets no second claim either.
        by_ada()
            .when(claim("ada", "c2"))
            .then_rejected_leaving(held_as(Hold::Yours, UNTIL), [told("ada", UNTIL)]),
        // An agent of the same name under another caller is another one.
        by_ada()
            .when(claim("ada", "c2"))
            .by("key-1")
            .then_rejected_leaving(held_until(UNTIL), [told("ada", UNTIL)]),
        by_ada()
            .and(events![converged(DESIGN_CODE, "c1")])
            .when(claim("bob", "c2"))
            .then_rejected(Rejection::AlreadyConverged),
    ]
}

/// Its holder is late.
fn overdue() -> Vec<Case<ClaimEdge>> {
    let by_ada = || given(ready()).wait(MINUTE_MS).and(events![started("ada", "c1", 1)]);
    let late = LEASE_MS + GRACE_MS;
    let in_review = || {
        let worked = by_ada().wait(MINUTE_MS).and(events![iterated("c1", 1, 0)]);
        worked.wait(MINUTE_MS).and(events![review_requested(1)])
    };
    let until_review = UNTIL + 2 * MINUTE_MS;
    let mut cases = vec![
        by_ada()
            .wait(late)
            .when(claim("bob", "c2"))
            .then_rejected_leaving(held_until(UNTIL), [told("bob", UNTIL)]),
        by_ada()
            .wait(late + 1)
            .when(claim("bob", "c2"))
            .then([expired("ada", "c1", 1, UNTIL), granted("bob", "c2", 2)]),
        // Its own claim is not taken over by a repeat.
        by_ada().wait(late + 1).when(claim("ada", "c1")).then_nothing(),
        given(ready_under(Rules { on_expiry: OnExpiry::SignalOnly, ..multi().rules() }))
            .wait(MINUTE_MS)
            .and(events![started("ada", "c1", 1)])
            .wait(late + 1)
            .when(claim("bob", "c2"))
            .then_rejected_leaving(held_as(Hold::Over, UNTIL), [told("bob", UNTIL)]),
        // Its own holder can go on, however late.
        given(ready_under(Rules { on_expiry: OnExpiry::SignalOnly, ..multi().rules() }))
            .wait(MINUTE_MS)
            .and(events![started("ada", "c1", 1)])
            .wait(late + 1)
            .when(claim("ada", "c2"))
            .then_rejected_leaving(held_as(Hold::Yours, UNTIL), [told("ada", UNTIL)]),
        // After a review the lease begins anew.
        in_review()
            .wait(REVIEW_MS / 2)
            .and(events![reviewed(1)])
            .wait(late)
            .when(claim("bob", "c2"))
            .then_rejected_leaving(
                held_until(until_review + REVIEW_MS / 2),
                [told("bob", until_review + REVIEW_MS / 2)],
            ),
        // A person who takes longer than seven days does not hold the edge for ever.
        in_review()
            .wait(REVIEW_MS + late + 1)
            .when(claim("bob", "c2"))
            .then([expired("ada", "c1", 1, until_review + REVIEW_MS), granted("bob", "c2", 2)]),
        in_review()
            .wait(2 * REVIEW_MS)
            .and(events![reviewed(1)])
            .when(claim("bob", "c2"))
            .then([expired("ada", "c1", 1, until_review + REVIEW_MS), granted("bob", "c2", 2)]),
    ];
    // Whatever the holder does shows that it is at work.
    for work in [
        events![iterated("c1", 1, 2)],
        events![renewed("ada", "c1")],
        events![barred(crate::Otherwise::Warn)],
        events![spawned(SEARCH, false)],
    ] {
        let worked = || by_ada().wait(LEASE_MS / 2).and(work.clone());
        let until = UNTIL + LEASE_MS / 2;
        cases.push(
            worked()
                .wait(late)
                .when(claim("bob", "c2"))
                .then_rejected_leaving(held_until(until), [told("bob", until)]),
        );
        cases.push(
            worked()
                .wait(late + 1)
                .when(claim("bob", "c2"))
                .then([expired("ada", "c1", 1, until), granted("bob", "c2", 2)]),
        );
    }
    cases
}

/// Something else comes first.
fn first() -> Vec<Case<ClaimEdge>> {
    let pay =
        || events![created(AUTH), FeatureCreated { dependencies: vec![id(AUTH)], ..created(PAY) },];
    let on_pay = |command: ClaimEdge| ClaimEdge {
        edge: id(&format!("{PAY}/requirements_design")),
        ..command
    };
    let done = || {
        events![
            converged(&format!("{AUTH}/requirements_design"), "c8"),
            converged(&format!("{AUTH}/design_code"), "c9"),
        ]
    };
    let of_pay = |event: EdgeStarted| {
        let edge: EdgeRef = id(&format!("{PAY}/requirements_design"));
        Claimed::Started(EdgeStarted { edge, ..event })
    };
    vec![
        given([])
            .when(claim("ada", "c1"))
            .then_rejected(Rejection::UnknownFeature { feature: id(AUTH) }),
        given(ready())
            .when(ClaimEdge { edge: id(&format!("{AUTH}/code_tests")), ..claim("ada", "c1") })
            .then_rejected(Rejection::UnknownEdge { edge: id(&format!("{AUTH}/code_tests")) }),
        given(events![created(AUTH)])
            .when(claim("ada", "c1"))
            .then_rejected(Rejection::NotAdmissible { edges: vec![id("requirements_design")] }),
        given(ready())
            .when(after(claim("ada", "c1"), &[SEARCH]))
            .then_rejected(Rejection::DependenciesDiffer { dependencies: vec![] }),
        given(pay())
            .when(on_pay(claim("ada", "c1")))
            .then_rejected(Rejection::DependenciesDiffer { dependencies: vec![id(AUTH)] }),
        given(pay())
            .when(after(on_pay(claim("ada", "c1")), &[AUTH]))
            .then_rejected(Rejection::WaitsFor { features: vec![id(AUTH)] }),
        given(pay())
            .and(done())
            .when(after(on_pay(claim("ada", "c1")), &[AUTH]))
            .then([of_pay(started("ada", "c1", 1))]),
        // A feature of which an edge was opened again is not done.
        given(pay())
            .and(done())
            .and(events![reopened(2)])
            .when(after(on_pay(claim("ada", "c1")), &[AUTH]))
            .then_rejected(Rejection::WaitsFor { features: vec![id(AUTH)] }),
        given(ready())
            .and(events![started("ada", "c1", 1), spawned(SEARCH, true), released("ada", "c1")])
            .when(claim("bob", "c2"))
            .then_rejected(Rejection::BlockedBySpawn { children: vec![id(SEARCH)] }),
        given(ready())
            .and(events![
                started("ada", "c1", 1),
                spawned(SEARCH, true),
                released("ada", "c1"),
                folded_back(SEARCH)
            ])
            .when(claim("bob", "c2"))
            .then([granted("bob", "c2", 2)]),
    ]
}
