//! ExpireClaim: writes down that a lease is over.
//!
//! It is due when the lease of a claim ends. While a person has to look, it is due a lease after the last day for that.
//! No decision needs it, because claim-edge looks at the lease itself. The event is for people and views, and it ends a
//! claim that nobody else wants.

use ringfence::prelude::*;
use ringfence::view::View;

use crate::views::Holding;
use crate::views::project_claims::ProjectClaims;
use crate::{AgentId, ClaimExpired, DetectedBy, EdgeEvent, EdgeRef, Edges, GRACE_MS, Projects};

/// The agent of the commands that are due.
const AGENT: &str = "sweep";

/// Ends the claim of this epoch, if its lease is over.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ExpireClaim {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    /// The agent that noticed the expiry. The event names the agent whose claim it was.
    #[serde(default)]
    pub agent: AgentId,
    /// The epoch of the claim that looks overdue.
    pub epoch: u64,
}

impl Slice for ExpireClaim {
    const NAME: &'static str = "expire-claim";
    const CALLERS: Callers = Callers::Nobody;
    type Context = Projects;
    type State = Edges;
    type Writes = ClaimExpired;
    type Rejection = Never;

    fn decide(&self, edges: &Edges, context: &CommandContext) -> Result<Vec<ClaimExpired>, Never> {
        let Self { edge: of, epoch, .. } = self.clone();
        let edge = edges.edge(&of);
        let overdue =
            edge.current().filter(|it| it.epoch == epoch && edge.is_overdue(context.now_ms));
        let expired = overdue.map(|late| ClaimExpired {
            edge: of,
            agent: late.agent.clone(),
            claim: late.id.clone(),
            epoch,
            lease_until_ms: edge.lease_until_ms().unwrap_or_default(),
            detected_by: DetectedBy::Sweep,
        });
        Ok(expired.into_iter().collect())
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{DESIGN_CODE, claim_expired, converged, released, started};
        use crate::{EdgeStarted, LEASE_MS};

        let expire = |epoch| ExpireClaim { edge: id(DESIGN_CODE), agent: id("sweep"), epoch };
        let late = LEASE_MS + GRACE_MS;
        let overdue = || given(events![started("ada", "c1", 1)]).wait(late + 1);
        vec![
            overdue().when(expire(1)).then([claim_expired("ada", "c1", 1)]),
            given(events![started("ada", "c1", 1)]).wait(late).when(expire(1)).then_nothing(),
            given([]).when(expire(1)).then_nothing(),
            overdue().when(expire(2)).then_nothing(),
            overdue().and(events![claim_expired("ada", "c1", 1)]).when(expire(1)).then_nothing(),
            overdue().and(events![released("ada", "c1")]).when(expire(1)).then_nothing(),
            overdue().and(events![converged(DESIGN_CODE, "c1")]).when(expire(1)).then_nothing(),
            // Another agent has the edge by now.
            overdue()
                .and(events![claim_expired("ada", "c1", 1), started("bob", "c2", 2)])
                .when(expire(1))
                .then_nothing(),
            given(events![EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) }])
                .wait(late + 1)
                .when(expire(1))
                .then_nothing(),
        ]
    }
}

/// The rows have the same data as in project-claims.
impl Due for ExpireClaim {
    type Reads = EdgeEvent;
    type Row = Holding;

    fn rows(event: &EdgeEvent) -> Vec<String> {
        ProjectClaims::rows(event)
    }

    fn evolve(row: Option<Holding>, id: &str, event: &EdgeEvent) -> Option<Holding> {
        ProjectClaims::evolve(row, id, event)
    }

    fn due_ms(row: &Holding) -> Option<u64> {
        let until_ms = row.lease.until_ms().filter(|_| row.current().is_some())?;
        Some(until_ms.saturating_add(GRACE_MS + 1))
    }

    fn command(id: &str, row: &Holding) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let holder = row.current().ok_or("nobody holds the edge")?;
        Ok(Self { edge: id.parse()?, agent: AGENT.parse()?, epoch: holder.epoch })
    }

    fn due_cases() -> Vec<DueCase<Self>> {
        use crate::facts::*;
        use crate::{LEASE_MS, REVIEW_MS};

        let expire = |epoch| ExpireClaim { edge: id(DESIGN_CODE), agent: id(AGENT), epoch };
        let late = LEASE_MS + GRACE_MS + 1;
        let claimed = || given(events![started("ada", "c1", 1)]);
        let asked = || claimed().and(events![iterated("c1", 1, 0), review_requested(1)]);
        vec![
            claimed().wait(late - 1).then_none_due(),
            claimed().wait(late).then_due([expire(1)]),
            claimed().and(events![released("ada", "c1")]).wait(late).then_none_due(),
            claimed().and(events![converged(DESIGN_CODE, "c1")]).wait(late).then_none_due(),
            claimed().wait(late).and(events![claim_expired("ada", "c1", 1)]).then_none_due(),
            claimed().wait(LEASE_MS).and(events![renewed("ada", "c1")]).wait(6_000).then_none_due(),
            claimed()
                .wait(late)
                .and(events![claim_expired("ada", "c1", 1), started("bob", "c2", 2)])
                .wait(late)
                .then_due([expire(2)]),
            // A lease stands still while a person has to look.
            asked().wait(REVIEW_MS + late - 1).then_none_due(),
            asked().wait(REVIEW_MS + late).then_due([expire(1)]),
            asked().wait(1_000).and(events![reviewed(1)]).wait(late).then_due([expire(1)]),
        ]
    }
}
