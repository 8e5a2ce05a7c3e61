//! project-claims: who holds which edge, and until when. One row for each edge that is claimed, named
//! `<project>/<feature>/<edge>`. The row goes when the claim is released or the edge converges.
//!
//! A claim whose end was recorded because its lease was over is shown with `expired`, until another claim follows.
//! `leaseUntilMs` is absent if claims have no end, and `suspendedUntilMs` is there while a person has to look. If the
//! edge is given back before the person has looked, its row has no claim until then.

use ringfence::view::View;

use super::Holding;
use crate::EdgeEvent;

#[derive(Debug)]
pub struct ProjectClaims;

impl View for ProjectClaims {
    const NAME: &'static str = "project-claims";
    type Reads = EdgeEvent;
    type Row = Holding;

    fn rows(event: &EdgeEvent) -> Vec<String> {
        vec![event.edge().to_string()]
    }

    fn evolve(row: Option<Holding>, _id: &str, event: &EdgeEvent) -> Option<Holding> {
        let holding = row.unwrap_or_default().and(event);
        (holding.holder.is_some() || holding.lease.is_suspended()).then_some(holding)
    }
}

#[cfg(test)]
mod tests {
    use ringfence::view::kit::given;
    use ringfence::{events, kit::BEGIN_MS};
    use serde_json::json;

    use super::*;
    use crate::facts::*;
    use crate::{LEASE_MS, REVIEW_MS};

    fn row(row: serde_json::Value) -> Holding {
        serde_json::from_value(row).expect("a row")
    }

    fn held(claim: &str, epoch: u64, lease_until_ms: u64) -> Holding {
        row(json!({
            "agent": "ada", "claim": claim, "epoch": epoch, "expired": false,
            "leaseMs": LEASE_MS, "leaseUntilMs": lease_until_ms,
        }))
    }

    #[test]
    fn a_row_shows_the_holder_until_the_claim_ends() {
        let claimed = || given(events![started("ada", "c1", 1)]);
        let until_ms = BEGIN_MS + LEASE_MS;
        claimed().then::<ProjectClaims>([(DESIGN_CODE, held("c1", 1, until_ms))]);
        claimed()
            .wait(1_000)
            .and(events![iterated("c1", 1, 2)])
            .then::<ProjectClaims>([(DESIGN_CODE, held("c1", 1, until_ms + 1_000))]);
        for end in events![released("ada", "c1"), converged(DESIGN_CODE, "c1")] {
            claimed().and([end]).then::<ProjectClaims>([]);
        }
        let expired = || claimed().and(events![claim_expired("ada", "c1", 1)]);
        let mut bars = held("c1", 1, until_ms);
        bars.holder.as_mut().expect("a holder").expired = true;
        expired().then::<ProjectClaims>([(DESIGN_CODE, bars)]);
        expired()
            .and(events![started("ada", "c2", 2)])
            .then::<ProjectClaims>([(DESIGN_CODE, held("c2", 2, until_ms))]);
    }

    #[test]
    fn a_lease_stands_still_until_a_person_has_looked() {
        let asked =
            || given(events![started("ada", "c1", 1), iterated("c1", 1, 0), review_requested(1)]);
        asked().then::<ProjectClaims>([(
            DESIGN_CODE,
            row(json!({
                "agent": "ada", "claim": "c1", "epoch": 1, "expired": false,
                "leaseMs": LEASE_MS, "leaseUntilMs": BEGIN_MS + REVIEW_MS + LEASE_MS,
                "suspendedUntilMs": BEGIN_MS + REVIEW_MS,
            })),
        )]);
        asked()
            .wait(1_000)
            .and(events![reviewed(1)])
            .then::<ProjectClaims>([(DESIGN_CODE, held("c1", 1, BEGIN_MS + LEASE_MS + 1_000))]);
        let given_back = || asked().and(events![released("ada", "c1")]);
        given_back().then::<ProjectClaims>([(
            DESIGN_CODE,
            row(json!({ "suspendedUntilMs": BEGIN_MS + REVIEW_MS })),
        )]);
        given_back().and(events![reviewed(1)]).then::<ProjectClaims>([]);
    }
}
