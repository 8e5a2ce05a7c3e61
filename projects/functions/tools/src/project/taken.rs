//! Takes lines, by their types. A line that does not fit the project is kept as it is, with the reason.

use projects::{
    Artifact, CheckpointCreated, Claim, ClaimExpired, ClaimRejected, Convergence,
    ConvergenceEscalated, DetectedBy, EdgeConverged, EdgeRef, EdgeReleased, FeatureRef,
    ForeignRecorded, GapCounts, GapsValidated, IntentId, IntentRaised, IterationCompleted, Kind,
    Otherwise, ProjectId, ReleaseCreated, ReviewCompleted, ReviewDecision, Sha256, SpawnCreated,
    SpawnFoldedBack, SpawnOutcome, Status, ended,
};
use ringfence_core::NewEvent;

use super::foreign::{FEATURE, Foreign};
use super::importer::{Importer, Why};

const NO_FEATURE: &str = "it names no feature of a project, such as REQ-F-AUTH-001";
const NO_EDGE: &str =
    "it names no feature and edge of a project, such as REQ-F-AUTH-001 and design_code";
const NO_TIME: &str =
    "its time can't be read: it has to be one such as 2026-02-19T12:00:00Z, and not before 1970";
const NO_DELTA: &str =
    "its number of failed checks can't be read: it has to be an integer from 0 to 4294967295";
const NOT_HELD: &str = "nobody holds the edge";

/// The result of a line.
pub(crate) struct Taken {
    pub(crate) events: Vec<NewEvent>,
    /// Why it is kept as it is, if it is.
    pub(crate) kept: Option<Why>,
}

impl Importer<'_> {
    /// Takes the next line.
    pub(crate) fn take(&mut self, line: &Foreign) -> Taken {
        let begins = self.begin();
        let kept = self.take_as(line, begins).err();
        if let Some(why) = kept.clone() {
            self.add(ForeignRecorded {
                project: self.project.clone(),
                line: line.id(),
                event_type: line.event_type.clone(),
                data: line.members.clone().into(),
                why: Some(why),
            });
        }
        Taken { events: self.happened(), kept }
    }

    fn take_as(&mut self, line: &Foreign, begins: bool) -> Result<(), Why> {
        if line.has_wrong_time() {
            return Err(NO_TIME.to_owned());
        }
        match &*line.kind() {
            "project_initialized" if begins => Ok(()),
            "project_initialized" => Err("the project has begun already".to_owned()),
            "edge_claim" | "edge_started" => self.start(line),
            "iteration_completed" => self.iterate(line),
            "edge_converged" => self.converge(line),
            "edge_released" => self.release(line),
            "claim_rejected" => self.reject(line),
            "claim_expired" => self.expire(line),
            "convergence_escalated" => self.escalate(line),
            "review_completed" => self.review(line),
            "feature_created" | "feature_spawned" | "spawn_created" => self.spawn(line),
            "feature_folded_back" | "spawn_folded_back" => self.fold_back(line),
            "checkpoint_created" => self.checkpoint(line),
            "gaps_validated" => self.gaps(line),
            "intent_raised" => self.intent(line),
            "release_created" => self.publish(line),
            _ => Err("no event of a project is of this type".to_owned()),
        }
    }

    fn edge_of(&self, line: &Foreign) -> Result<EdgeRef, Why> {
        line.edge(self.project).ok_or_else(|| NO_EDGE.to_owned())
    }

    /// The edge of a line, and the claim by which somebody holds it.
    fn held(&self, line: &Foreign) -> Result<(EdgeRef, Claim), Why> {
        let edge = self.edge_of(line)?;
        let claim = self.edges.edge(&edge).current().cloned().ok_or(NOT_HELD)?;
        Ok((edge, claim))
    }

    fn start(&mut self, line: &Foreign) -> Result<(), Why> {
        let (edge, agent) = (self.edge_of(line)?, self.agent(line));
        if let Some(claim) = self.edges.edge(&edge).current() {
            return Err(format!("{} holds the edge already", claim.agent));
        }
        self.claim(&edge, &agent).map(drop)
    }

    fn iterate(&mut self, line: &Foreign) -> Result<(), Why> {
        let (of, agent) = (self.edge_of(line)?, self.agent(line));
        let delta = line.delta().ok_or(NO_DELTA)?;
        let claim = self.claim(&of, &agent)?;
        let edge = self.edges.edge(&of);
        let (run, iteration) = (edge.run(), edge.last_iteration() + 1);
        let status = match line.text(&["status"]) {
            Some("converged") => Status::Converged,
            Some("blocked") => Status::Blocked,
            _ => Status::InProgress,
        };
        let req_keys = line.texts(&["req_keys", "reqKeys"]);
        self.add(IterationCompleted {
            edge: of,
            agent,
            claim,
            run,
            iteration,
            status,
            delta,
            checks: vec![],
            source_findings: line.texts(&["source_findings", "sourceFindings"]),
            process_gaps: line.texts(&["process_gaps", "processGaps"]),
            artifact: None,
            context_hash: line
                .hash(&["context_hash", "contextHash"])
                .unwrap_or_else(|| Sha256::of("")),
            req_keys: req_keys.iter().filter_map(|key| key.parse().ok()).collect(),
        });
        Ok(())
    }

    fn converge(&mut self, line: &Foreign) -> Result<(), Why> {
        let (of, agent) = (self.edge_of(line)?, self.agent(line));
        if self.edges.edge(&of).is_converged() {
            return Err("the edge has converged already".to_owned());
        }
        self.claim(&of, &agent)?;
        let convergence = match line.text(&["convergence_type", "convergence"]) {
            Some("question_answered") => Convergence::QuestionAnswered,
            Some("time_box_expired") => Convergence::TimeBoxExpired,
            _ => Convergence::Standard,
        };
        let (feature, edge) = (self.features.feature(&of.feature), self.edges.edge(&of));
        let feature = feature.expect("a claimed edge is one of a feature");
        let claim = edge.current().expect("it is claimed");
        let claim = (claim.id.clone(), claim.epoch);
        let ended: EdgeConverged = ended(&of, &agent, feature, edge, claim, convergence);
        self.add(ended);
        Ok(())
    }

    fn release(&mut self, line: &Foreign) -> Result<(), Why> {
        let (edge, Claim { id: claim, agent, .. }) = self.held(line)?;
        let reason = line.text(&["reason"]).unwrap_or_default().to_owned();
        self.add(EdgeReleased { edge, agent, claim, reason, forced_by: None });
        Ok(())
    }

    fn reject(&mut self, line: &Foreign) -> Result<(), Why> {
        let (edge, Claim { id: claim, agent: holder, epoch, .. }) = self.held(line)?;
        let agent = line.agent().ok_or("it names no agent")?;
        let lease_until_ms = self.edges.edge(&edge).lease_until_ms();
        self.add_once(ClaimRejected { edge, agent, holder, claim, epoch, lease_until_ms })
    }

    fn expire(&mut self, line: &Foreign) -> Result<(), Why> {
        let (edge, Claim { id: claim, agent, epoch, .. }) = self.held(line)?;
        let lease_until_ms = line.at_ms().unwrap_or_default();
        let detected_by = DetectedBy::Sweep;
        self.add(ClaimExpired { edge, agent, claim, epoch, lease_until_ms, detected_by });
        Ok(())
    }

    fn escalate(&mut self, line: &Foreign) -> Result<(), Why> {
        let (of, Claim { id: claim, agent, .. }) = self.held(line)?;
        let edge = self.edges.edge(&of);
        let (run, iteration) = (edge.run(), edge.last_iteration());
        let role = line.text(&["role"]).and_then(|role| role.parse().ok());
        let (action, convergence) = (Otherwise::Escalate, Convergence::Standard);
        let edge = of;
        let escalated =
            ConvergenceEscalated { edge, agent, claim, run, iteration, role, action, convergence };
        self.add(escalated);
        Ok(())
    }

    fn review(&mut self, line: &Foreign) -> Result<(), Why> {
        let of = self.edge_of(line)?;
        let decision = match line.text(&["decision", "outcome"]) {
            Some("approved" | "approve") => ReviewDecision::Approved,
            Some("rejected" | "refined" | "changes_requested" | "changesRequested") => {
                ReviewDecision::ChangesRequested
            }
            _ => return Err("it has no decision, such as approved or rejected".to_owned()),
        };
        let (run, iteration, sha256) = self.edges.edge(&of).reviewed();
        if iteration == 0 {
            return Err("the edge has no iteration that a person could have looked at".to_owned());
        }
        let agent = self.agent(line);
        let reviewer =
            line.text(&["reviewer", "actor"]).map_or_else(|| agent.to_string(), str::to_owned);
        let feedback = line.text(&["feedback", "comment"]).unwrap_or_default().to_owned();
        let edge = of;
        let reviewed =
            ReviewCompleted { edge, agent, run, iteration, sha256, decision, reviewer, feedback };
        self.add(reviewed);
        Ok(())
    }

    /// If a line of a new feature names an edge of the parent that is open, the feature is born there.
    fn spawn(&mut self, line: &Foreign) -> Result<(), Why> {
        let (project, agent) = (self.project, self.agent(line));
        let child = child(line, project).ok_or(NO_FEATURE)?;
        if self.features.has(&child) {
            return Err("the feature is there already".to_owned());
        }
        let parent = line.feature(project, &["parent", "parent_vector"]);
        let parent = parent.filter(|parent| *parent != child);
        if let Some(parent) = &parent {
            if !self.features.has(parent) {
                self.create(parent.clone(), None, None);
            }
            let at = line
                .edge_name()
                .map(|name| parent.edge(&name))
                .filter(|at| self.has_edge(at) && !self.edges.edge(at).is_converged());
            // If another agent holds the edge, the feature is not born there.
            if let Some(edge) = at
                && let Ok(claim) = self.claim(&edge, &agent)
            {
                self.add(SpawnCreated {
                    edge,
                    agent,
                    claim,
                    child: child.clone(),
                    kind: Kind::Feature,
                    blocks: false,
                    reason: line.text(&["reason", "trigger"]).unwrap_or_default().to_owned(),
                    intent: None,
                });
            }
        }
        self.create(child, parent, Some(line));
        Ok(())
    }

    fn fold_back(&mut self, line: &Foreign) -> Result<(), Why> {
        let child = child(line, self.project).ok_or(NO_FEATURE)?;
        let edge = self.born.get(&child).cloned().ok_or("the feature was born at no edge")?;
        if self.edges.edge(&edge).spawned(&child) != Some(false) {
            return Err("the feature is folded back already".to_owned());
        }
        // The line itself counts as the file: it may lack a file's place and hash.
        let uri = format!("import:{}", line.id()).try_into().expect("a short text");
        let payload = Artifact { uri, sha256: line.sha256.clone() };
        let (agent, outcome) = (self.agent(line), SpawnOutcome::Done);
        self.add(SpawnFoldedBack { edge, agent, child, outcome, payload });
        Ok(())
    }

    fn checkpoint(&mut self, line: &Foreign) -> Result<(), Why> {
        let hash = line.hash(&["sha256", "context_hash", "contextHash"]);
        let uri = line.text(&["uri", "path", "file"]);
        self.add_once(CheckpointCreated {
            project: self.project.clone(),
            sha256: hash.unwrap_or_else(|| line.sha256.clone()),
            agent: self.agent(line),
            uri: uri.map_or_else(|| format!("import:{}", line.id()), str::to_owned),
            note: line.text(&["note", "message", "label"]).unwrap_or_default().to_owned(),
        })
    }

    fn gaps(&mut self, line: &Foreign) -> Result<(), Why> {
        let count = |names: &[&str]| line.count(names);
        let full = count(&["full", "full_coverage"])
            .ok_or("it has no count of requirements that are met in full")?;
        let partial = count(&["partial", "partial_coverage"]).unwrap_or(0);
        let none = count(&["none", "no_coverage", "uncovered"]).unwrap_or(0);
        let sum = full.saturating_add(partial).saturating_add(none);
        let total = count(&["total", "total_req_keys"]).unwrap_or(sum);
        if total != sum {
            return Err(format!("its counts add up to {sum}, and not to {total}"));
        }
        let gaps = line.hash(&["gaps"]).unwrap_or_else(|| line.sha256.clone());
        let as_of = line.text(&["as_of", "asOf", "timestamp"]);
        self.add_once(GapsValidated {
            project: self.project.clone(),
            intent: IntentId::of("gaps", &gaps),
            agent: self.agent(line),
            as_of: as_of.map_or_else(|| line.id(), str::to_owned),
            counts: GapCounts { total, full, partial, none },
            requirements: [].into(),
        })
    }

    fn intent(&mut self, line: &Foreign) -> Result<(), Why> {
        let intent = line.text(&["intent_id", "intentId", "intent"]);
        let intent = intent.and_then(|intent| intent.parse().ok());
        self.add_once(IntentRaised {
            project: self.project.clone(),
            intent: intent.unwrap_or_else(|| IntentId::of("import", &line.sha256)),
            agent: self.agent(line),
            reason: line.text(&["reason", "trigger", "description"]).unwrap_or_default().to_owned(),
        })
    }

    fn publish(&mut self, line: &Foreign) -> Result<(), Why> {
        let version = line.text(&["version"]).map(|version| version.trim_start_matches('v'));
        let version = version.and_then(|version| version.parse().ok());
        let version = version.ok_or("it has no version, such as 1.4.0")?;
        let names = line.names(&["features", "features_included"]);
        let (mut features, mut unknown) = (Vec::new(), Vec::new());
        for name in names {
            let feature = name.parse().ok().map(|feature| {
                let project = self.project.clone();
                FeatureRef { project, feature }
            });
            match feature.filter(|feature| self.features.has(feature)) {
                Some(feature) => features.push(feature),
                None => unknown.push(name),
            }
        }
        if !unknown.is_empty() {
            return Err(format!("it names features that are not here: {}", unknown.join(", ")));
        }
        self.add_once(ReleaseCreated {
            project: self.project.clone(),
            version,
            agent: self.agent(line),
            features,
            notes: line.text(&["notes", "summary"]).unwrap_or_default().to_owned(),
        })
    }
}

/// The feature that a line says is born or folded back.
fn child(line: &Foreign, project: &ProjectId) -> Option<FeatureRef> {
    let child = line.feature(project, &["child", "child_vector"]);
    child.or_else(|| line.feature(project, FEATURE))
}
