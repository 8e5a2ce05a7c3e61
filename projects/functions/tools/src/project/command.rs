//! A command before it is sent, with the values that the cache adds.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use projects::{
    AgentId, ClaimId, ConvergenceEscalated, EdgeConverged, EdgeRef, FeatureRef, PRIMARY, ProjectId,
};
use ringfence_aws::Clock;
use ringfence_core::Event;
use serde::Serialize;
use serde_json::{Map, Value};

use super::json;
use super::standing::Standing;
use projects::line::About;

/// The slices whose commands name the current claim of their agent.
const WORKING: [&str; 6] = [
    "complete-iteration",
    "converge-edge",
    "release-edge",
    "renew-claim",
    "request-review",
    "spawn-feature",
];
/// Slices of these that claim a free edge themselves, in single mode.
const STARTING: [&str; 2] = ["complete-iteration", CONVERGE];
const DEPENDING: &str = "add-dependency";
const CONVERGE: &str = "converge-edge";

/// A command as a person gave it, with values that answers have named since.
pub(crate) struct Draft {
    pub(crate) slice: String,
    pub(crate) about: About,
    pub(crate) agent: String,
    given: Map<String, Value>,
    learned: Map<String, Value>,
}

/// The consequence of an answer for a value that the cache has added.
pub(crate) enum Advice {
    /// The answer names the right one.
    Learned,
    /// Other agents have changed it.
    Pull,
}

impl Draft {
    /// The slice that claims an edge.
    pub(crate) const CLAIM: &str = "claim-edge";

    /// Without a name, the agent of single mode gives it.
    ///
    /// # Errors
    /// It is not a JSON object.
    pub(crate) fn new(slice: &str, text: &str, agent: Option<&AgentId>) -> Result<Self> {
        let mut given = json::object(text).context("--data")?;
        if let Some(agent) = agent {
            given.entry("agent").or_insert_with(|| agent.to_string().into());
        }
        let named = given.get("agent").and_then(Value::as_str).map(str::to_owned);
        let agent = named.unwrap_or_else(|| PRIMARY.to_owned());
        let (slice, learned) = (slice.to_owned(), Map::new());
        let about = About::of(&Value::Object(given.clone()));
        let mut draft = Self { slice, about, agent, given, learned };
        if draft.is_claim() {
            // The id stays the same in all tries, so a lost answer is found again.
            draft.learn("claim", Clock::system().uuid().to_string());
        }
        Ok(draft)
    }

    pub(crate) fn project(&self) -> Option<&ProjectId> {
        self.about.project.as_ref()
    }

    /// Whether it claims an edge.
    pub(crate) fn is_claim(&self) -> bool {
        self.slice == Self::CLAIM
    }

    /// Whether it needs a claim that neither the person nor the cache names.
    pub(crate) fn lacks_claim(&self, standing: &Standing) -> bool {
        self.is_working() && self.filled(standing).get("claim").is_none()
    }

    /// Checks that it names the claim that it needs.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn check(&self, filled: &Value) -> Result<()> {
        let (agent, edge) = (&self.agent, filled.get("edge").and_then(Value::as_str));
        ensure!(
            !self.is_working() || filled.get("claim").is_some() || self.may_start(),
            "the cache has no claim of {agent} on {}: claim it, `ringfence project pull`, or name the claim in --data",
            edge.unwrap_or("the edge")
        );
        Ok(())
    }

    /// An answer that accepts it, with the id of the claim if it makes one.
    pub(crate) fn shown(&self, mut answer: Value) -> Value {
        if let Some(claim) = self.claim() {
            answer["claim"] = claim.into();
        }
        let events = answer["events"].take();
        if !events.is_null() {
            self.note(&mut answer, &events);
            answer["events"] = events;
        }
        answer
    }

    /// The id of the claim that it makes.
    pub(crate) fn claim(&self) -> Option<&str> {
        let claim = self.given.get("claim").or_else(|| self.learned.get("claim"));
        claim.filter(|_| self.is_claim()).and_then(Value::as_str)
    }

    /// Adds to an answer that accepts it, if a person could misread it, that the edge has not converged.
    pub(crate) fn note(&self, answer: &mut Value, events: &Value) {
        let events = events.as_array().into_iter().flatten();
        let types: Vec<_> = events.map(|event| &event["type"]).collect();
        let has = |name: &str| types.iter().any(|event_type| *event_type == name);
        if self.slice == CONVERGE && has(ConvergenceEscalated::NAME) && !has(EdgeConverged::NAME) {
            answer["detail"] =
                "the edge has not converged: a person has to decide, by record-review".into();
        } else if self.slice == CONVERGE && types.is_empty() {
            answer["detail"] = "nothing has changed: this claim has converged the edge before, or a person has still \
                                to decide"
                .into();
        }
    }

    fn is_working(&self) -> bool {
        WORKING.contains(&&*self.slice)
    }

    /// Whether it claims a free edge itself, if the project is in single mode.
    fn may_start(&self) -> bool {
        STARTING.contains(&&*self.slice) && self.agent == PRIMARY
    }

    /// The current claim of its agent on an edge. A person answers a question under the claim of the agent that asked
    /// it.
    fn claim_on<'s>(&self, edge: &EdgeRef, standing: &'s Standing) -> Option<&'s ClaimId> {
        let holder = standing.holder(edge)?;
        let convergence = self.given.get("convergence").and_then(Value::as_str);
        let is_answer = self.slice == CONVERGE && convergence == Some("questionAnswered");
        (is_answer || holder.agent.to_string() == self.agent).then_some(&holder.claim)
    }

    /// The command, with values from the cache and the answers.
    pub(crate) fn filled(&self, standing: &Standing) -> Value {
        let mut filled = Map::new();
        let mut add = |field: &str, value| {
            filled.insert(field.to_owned(), value);
        };
        match &self.about {
            About { edge: Some(edge), .. } if self.is_claim() => {
                add("after", value(standing.dependencies(&edge.feature)));
            }
            About { edge: Some(edge), .. } if self.is_working() => {
                if let Some(claim) = self.claim_on(edge, standing) {
                    add("claim", claim.to_string().into());
                } else if self.may_start() && !self.given.contains_key("claim") {
                    add("after", value(standing.dependencies(&edge.feature)));
                }
            }
            About { .. } if self.slice == DEPENDING => {
                let on = self.given.get("on").and_then(Value::as_str);
                if let Some(on) = on.and_then(|on| on.parse().ok()) {
                    add("reachable", value(standing.reachable(&on)));
                }
            }
            About { .. } => {}
        }
        filled.extend(self.learned.clone());
        // Values that a person gives come first.
        filled.extend(self.given.clone());
        filled.into()
    }

    /// The consequence of a rejection for a value that no person has given; `None` if there is none.
    pub(crate) fn advice(&mut self, filled: &Value, answer: &Value) -> Option<Advice> {
        let given = |field: &str| self.given.contains_key(field);
        let features = |field: &str| -> Option<BTreeSet<FeatureRef>> {
            serde_json::from_value(answer.get(field)?.clone()).ok()
        };
        match answer.get("code")?.as_str()? {
            "DependenciesDiffer" if !given("after") => {
                let dependencies = features("dependencies")?;
                self.learn("after", dependencies);
                Some(Advice::Learned)
            }
            "ReachableIncomplete" if !given("reachable") => {
                let mut reachable = features("missing")?;
                let sent: Vec<FeatureRef> =
                    serde_json::from_value(filled.get("reachable")?.clone()).ok()?;
                reachable.extend(sent);
                self.learn("reachable", reachable);
                Some(Advice::Learned)
            }
            "StaleClaim" if self.is_working() && !given("claim") => Some(Advice::Pull),
            _ => None,
        }
    }

    fn learn(&mut self, field: &str, known: impl Serialize) {
        self.learned.insert(field.to_owned(), value(known));
    }
}

fn value(of: impl Serialize) -> Value {
    serde_json::to_value(of).expect("names are texts")
}
