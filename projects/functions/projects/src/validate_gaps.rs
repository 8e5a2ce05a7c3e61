//! ValidateGaps: says how far a project's requirements are met.
//!
//! The command names the set of gaps by its hash. The boundary is that set, so the same gaps raise one intent,
//! however often they are found.

use std::collections::{BTreeMap, BTreeSet};

use ringfence::{List, Text, prelude::*};

use crate::{
    AgentId, GapCounts, GapsValidated, IntentId, IntentRaised, Met, Project, ProjectId, Projects,
    Rejection, ReqKey, Sha256,
};

/// How many requirements a command names at most.
pub const REQUIREMENTS_MAX: usize = 200;

/// Says how far the requirements are met.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "intent", partition, value = format!("{project}/{}", intent(gaps)))]
pub struct ValidateGaps {
    #[tag(key = "project", cross_partition)]
    pub project: ProjectId,
    /// The hash of the set of gaps.
    pub gaps: Sha256,
    #[serde(default)]
    pub agent: AgentId,
    /// The state of the project that was compared: any string that names it.
    pub as_of: Text<200>,
    pub counts: GapCounts,
    /// How far each requirement is met. Requirements without a name here are only counted.
    #[serde(default)]
    pub requirements: List<Requirement, REQUIREMENTS_MAX>,
}

/// How far a requirement is met.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    pub req_key: ReqKey,
    pub met: Met,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    GapsValidated { as_of: String },
    IntentRaised,
}

/// The states of the project in which the set was found before.
#[derive(Default)]
pub struct Before(BTreeSet<String>);

#[derive(Writes)]
pub enum Validated {
    Gaps(GapsValidated),
    Intent(IntentRaised),
}

/// The id of the intent that a set of gaps raises.
fn intent(gaps: &Sha256) -> IntentId {
    IntentId::of("gaps", gaps)
}

impl State for Before {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        match event {
            Consumed::GapsValidated { as_of } => self.0.extend([as_of]),
            Consumed::IntentRaised => {}
        }
        self
    }
}

impl Slice for ValidateGaps {
    const NAME: &'static str = "validate-gaps";
    type Context = Projects;
    type State = (Before, Project);
    type Writes = Validated;
    type Rejection = Rejection;

    fn decide(
        &self,
        (Before(before), of): &(Before, Project),
        _: &CommandContext,
    ) -> Result<Vec<Validated>, Rejection> {
        let Self { project, gaps, agent, as_of, counts, requirements } = self.clone();
        of.of_agent(&project, &agent)?;
        let GapCounts { total, full, partial, none } = counts;
        let sum = [full, partial, none].map(u64::from).iter().sum();
        if sum != u64::from(total) {
            return Err(Rejection::CountsDiffer { sum });
        }
        let requirements: BTreeMap<ReqKey, Met> =
            requirements.iter().map(|it| (it.req_key.clone(), it.met)).collect();
        for (met, count) in [(Met::Full, full), (Met::Partial, partial), (Met::None, none)] {
            let named = requirements.values().filter(|named| **named == met).count();
            if named > count as usize {
                return Err(Rejection::TooManyNamed { met });
            }
        }
        let (intent, as_of) = (intent(&gaps), String::from(as_of));
        if before.contains(&as_of) {
            return Ok(vec![]);
        }
        let raised = (before.is_empty() && full < total).then(|| {
            let reason = format!("{partial} requirements are met in part, {none} not at all");
            let (project, intent, agent) = (project.clone(), intent.clone(), agent.clone());
            Validated::Intent(IntentRaised { project, intent, agent, reason })
        });
        let validated = GapsValidated { project, intent, agent, as_of, counts, requirements };
        Ok([Validated::Gaps(validated)].into_iter().chain(raised).collect())
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{hash, initialized, multi};

        let counts = |full, partial, none| GapCounts { total: 10, full, partial, none };
        let some = || counts(5, 3, 2);
        let validate = |as_of, counts| ValidateGaps {
            project: id("shop"),
            gaps: hash(1),
            agent: id("ada"),
            as_of: id(as_of),
            counts,
            requirements: List::default(),
        };
        let validated = |as_of: &str, counts| GapsValidated {
            project: id("shop"),
            intent: intent(&hash(1)),
            agent: id("ada"),
            as_of: as_of.to_owned(),
            counts,
            requirements: BTreeMap::new(),
        };
        let begun = || given(events![initialized(multi())]);
        let named = |requirements: Vec<Requirement>| ValidateGaps {
            requirements: requirements.try_into().expect("few"),
            ..validate("monday", some())
        };
        let requirement = |name: &str, met| Requirement { req_key: id(name), met };
        let raised = || IntentRaised {
            project: id("shop"),
            intent: intent(&hash(1)),
            agent: id("ada"),
            reason: "3 requirements are met in part, 2 not at all".to_owned(),
        };
        vec![
            given([])
                .when(validate("monday", some()))
                .then_rejected(Rejection::UnknownProject { project: id("shop") }),
            begun()
                .when(validate("monday", some()))
                .then([Validated::Gaps(validated("monday", some())), Validated::Intent(raised())]),
            begun()
                .and(events![validated("monday", some()), raised()])
                .when(validate("monday", some()))
                .then_nothing(),
            begun()
                .and(events![validated("monday", some()), raised()])
                .when(validate("tuesday", some()))
                .then([Validated::Gaps(validated("tuesday", some()))]),
            begun()
                .and(events![validated("monday", some()), raised(), validated("tuesday", some())])
                .when(validate("monday", some()))
                .then_nothing(),
            // A set without gaps raises nothing.
            begun()
                .when(validate("monday", counts(10, 0, 0)))
                .then([Validated::Gaps(validated("monday", counts(10, 0, 0)))]),
            begun()
                .when(validate("monday", counts(5, 3, 3)))
                .then_rejected(Rejection::CountsDiffer { sum: 11 }),
            // A requirement is named once: of two that name it, the last one counts.
            begun()
                .when(named(vec![
                    requirement("AUTH-1", Met::Full),
                    requirement("AUTH-2", Met::Full),
                    requirement("AUTH-2", Met::None),
                ]))
                .then([
                    Validated::Gaps(GapsValidated {
                        requirements: [(id("AUTH-1"), Met::Full), (id("AUTH-2"), Met::None)].into(),
                        ..validated("monday", some())
                    }),
                    Validated::Intent(raised()),
                ]),
            begun()
                .when(named((0..3).map(|n| requirement(&format!("AUTH-{n}"), Met::None)).collect()))
                .then_rejected(Rejection::TooManyNamed { met: Met::None }),
        ]
    }
}
