//! What follows from the lines of another program: the events of the context, in the order of the lines.
//!
//! Another program need not say where a feature begins, or the work on an edge. Then the first line that rests on it
//! is preceded by it.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::mem;

use anyhow::{Context, Result, ensure};
use projects::{
    AgentId, Artifact, ClaimId, Config, Convergence, EdgeEvent, EdgeRef, EdgeReopened, EdgeStarted,
    Edges, FeatureCreated, FeatureReconfigured, FeatureRef, Features, ForeignRecorded,
    IterationCompleted, Kind, Mode, PRIMARY, Project, ProjectId, ProjectInitialized, Projects,
    SpawnCreated, SpawnFoldedBack, SpawnOutcome, Status, ended,
};
use ringfence::{
    BoundaryId, Catalog, Context as _, Event, Metadata, NewEvent, Reads, SequencedEvent, State,
    Text,
};
use serde_json::json;

use super::foreign::{Foreign, Work, sha256};

/// How far an edge is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Since it was last opened.
    pub(crate) iterations: u32,
    pub(crate) is_converged: bool,
}

impl Display for Progress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let end = if self.is_converged { "converged" } else { "open" };
        write!(f, "{end} after {} iterations", self.iterations)
    }
}

/// A project as it is after the lines so far.
pub(crate) struct Importer<'a> {
    project: &'a ProjectId,
    catalog: Catalog,
    configured: Project,
    features: Features,
    edges: Edges,
    /// The edges at which features were born.
    born: BTreeMap<FeatureRef, EdgeRef>,
    /// What has happened since the last line.
    events: Vec<NewEvent>,
}

impl<'a> Importer<'a> {
    /// A project with these events. Without any it begins with the first line, and its graph has the edges of the
    /// lines.
    ///
    /// # Errors
    /// The project is not in single mode, or its graph lacks an edge of the lines or can't have all of them.
    pub(crate) fn new(
        project: &'a ProjectId,
        before: &[SequencedEvent],
        lines: &[Foreign],
    ) -> Result<Self> {
        let mut importer = Self {
            project,
            catalog: Projects::catalog()?,
            configured: Project::default(),
            features: Features::default(),
            edges: Edges::default(),
            born: BTreeMap::new(),
            events: Vec::new(),
        };
        for event in before {
            importer.follow(event)?;
        }
        if importer.configured.config(project).is_err() {
            let config = graph(project, lines)?;
            importer.add(ProjectInitialized { project: project.clone(), agent: primary(), config });
        }
        let (config, _) = importer.config();
        ensure!(
            config.mode == Mode::Single,
            "{project} is in multi mode: what another program has done alone goes into a project in single mode"
        );
        for line in lines {
            let Some((EdgeRef { name, .. }, _)) = line.work(project) else { continue };
            ensure!(
                config.edges.iter().any(|rule| rule.edge == name),
                "line {}: the graph of {project} has no edge {name}: add it with `reconfigure-project`",
                line.number
            );
        }
        Ok(importer)
    }

    /// The events that follow from the next line.
    pub(crate) fn events_of(&mut self, line: &Foreign) -> Vec<NewEvent> {
        let is_known = match (line.work(self.project), &*line.kind()) {
            (Some((edge, work)), _) => self.work(line, &edge, work),
            (None, "feature_created" | "feature_spawned" | "spawn_created") => self.spawn(line),
            (None, "feature_folded_back" | "spawn_folded_back") => self.fold_back(line),
            (None, _) => false,
        };
        if !is_known {
            self.add(ForeignRecorded {
                project: self.project.clone(),
                line: line.id(),
                event_type: line.event_type.clone(),
                data: line.members.clone().into(),
            });
        }
        mem::take(&mut self.events)
    }

    /// How far an edge is.
    pub(crate) fn progress(&self, edge: &EdgeRef) -> Progress {
        let edge = self.edges.edge(edge);
        Progress { iterations: edge.last_iteration(), is_converged: edge.is_converged() }
    }

    fn config(&self) -> (&Config, u64) {
        self.configured.config(self.project).expect("the importer begins the project")
    }

    /// Whether a feature has an edge, or takes it with the rules of the project.
    fn has_edge(&self, of: &EdgeRef) -> bool {
        let (config, _) = self.config();
        self.features.rule(of).is_ok() || config.edges.iter().any(|rule| rule.edge == of.name)
    }

    fn add<E: Event>(&mut self, event: E) {
        let event = NewEvent::from(event);
        let NewEvent { event_type, tags, data } = event.clone();
        let sequenced = SequencedEvent {
            partition: BoundaryId::tagless(),
            slot: 1,
            // In single mode nothing depends on the time.
            at: 1,
            rest: 0,
            event_type: event_type.into_owned(),
            context: Projects::NAME.to_owned(),
            tags,
            version: self.catalog.version(&event.event_type),
            data,
            metadata: Metadata::default(),
        };
        self.follow(&sequenced).expect("a new event can be read back");
        self.events.push(event);
    }

    fn follow(&mut self, event: &SequencedEvent) -> Result<()> {
        let event = self.catalog.current(event)?;
        let event = <(Project, Features, Edges) as State>::Reads::decode(&event)?;
        if let (_, _, Some(EdgeEvent::SpawnCreated { child, edge, .. })) = &event {
            self.born.insert(child.clone(), edge.clone());
        }
        let Self { configured, features, edges, .. } = self;
        let known = (mem::take(configured), mem::take(features), mem::take(edges));
        (*configured, *features, *edges) = known.evolve(event);
        Ok(())
    }

    /// Takes a line of work; false if it says what is so already.
    fn work(&mut self, line: &Foreign, of: &EdgeRef, work: Work) -> bool {
        let edge = self.edges.edge(of);
        let is_so = match work {
            Work::Started => edge.current().is_some(),
            Work::Iteration => false,
            Work::Converged => edge.is_converged(),
        };
        if is_so {
            return false;
        }
        let claim = self.claim(of);
        match work {
            Work::Started => {}
            Work::Iteration => self.iterate(line, of, claim),
            Work::Converged => self.converge(line, of),
        }
        true
    }

    /// The current claim on an edge. If nobody holds the edge, its work begins here, and the feature begins before it. A
    /// feature that lacks the edge takes the project's rules, which have it. An edge that was done is opened again.
    fn claim(&mut self, of: &EdgeRef) -> ClaimId {
        let rules = self.features.feature(&of.feature).ok().map(|feature| &feature.rules);
        let has_edge = rules.map(|rules| rules.edge(&of.name).is_some());
        match has_edge {
            None => self.create(of.feature.clone(), None, None),
            Some(false) => {
                let (config, version) = self.config();
                let (feature, rules) = (of.feature.clone(), config.rules());
                self.add(FeatureReconfigured { feature, agent: primary(), rules, version });
            }
            Some(true) => {}
        }
        let edge = self.edges.edge(of);
        if let Some(claim) = edge.current() {
            return claim.id.clone();
        }
        let (epoch, run, is_converged) = (edge.next_epoch(), edge.run(), edge.is_converged());
        let claim: ClaimId = format!("import-{epoch}").parse().expect("a name");
        if is_converged {
            let is_done = self.features.is_done(&of.feature);
            self.add(EdgeReopened {
                edge: of.clone(),
                agent: primary(),
                run: run + 1,
                reason: "work went on".to_owned(),
                reopens_feature: is_done,
            });
        }
        let (config, _) = self.config();
        self.add(EdgeStarted {
            edge: of.clone(),
            agent: primary(),
            claim: claim.clone(),
            epoch,
            run: run + u32::from(is_converged),
            principal: None,
            lease_ms: None,
            stuck_after: config.stuck_after,
        });
        claim
    }

    fn iterate(&mut self, line: &Foreign, of: &EdgeRef, claim: ClaimId) {
        let edge = self.edges.edge(of);
        let (run, iteration) = (edge.run(), edge.last_iteration() + 1);
        let status = match line.text(&["status"]) {
            Some("converged") => Status::Converged,
            Some("blocked") => Status::Blocked,
            _ => Status::InProgress,
        };
        let req_keys = line.texts(&["req_keys", "reqKeys"]);
        let context = line.text(&["context_hash", "contextHash"]).unwrap_or_default();
        let context = context.strip_prefix("sha256:").unwrap_or(context);
        self.add(IterationCompleted {
            edge: of.clone(),
            agent: primary(),
            claim,
            run,
            iteration,
            status,
            delta: line.delta(),
            checks: vec![],
            source_findings: line.texts(&["source_findings", "sourceFindings"]),
            process_gaps: line.texts(&["process_gaps", "processGaps"]),
            artifact: None,
            // The other program may write a text here. Then its hash is kept.
            context_hash: context.parse().unwrap_or_else(|_| sha256(context)),
            req_keys: req_keys.iter().filter_map(|key| key.parse().ok()).collect(),
        });
    }

    fn converge(&mut self, line: &Foreign, of: &EdgeRef) {
        let convergence = match line.text(&["convergence_type", "convergence"]) {
            Some("question_answered") => Convergence::QuestionAnswered,
            Some("time_box_expired") => Convergence::TimeBoxExpired,
            _ => Convergence::Standard,
        };
        let (feature, edge) = (self.features.feature(&of.feature), self.edges.edge(of));
        let feature = feature.expect("a claimed edge is one of a feature");
        let claim = edge.latest().expect("the edge is claimed");
        let claim = (claim.id.clone(), claim.epoch);
        self.add(ended(of, &primary(), feature, edge, claim, convergence));
    }

    fn create(&mut self, feature: FeatureRef, parent: Option<FeatureRef>, line: Option<&Foreign>) {
        let title: Option<Text<200>> = line
            .and_then(|line| line.text(&["title"]))
            .and_then(|title| title.to_owned().try_into().ok());
        let kind = line.and_then(|line| line.member(&["kind", "vector_type"]));
        let kind = kind.and_then(|kind| serde_json::from_value(kind.clone()).ok());
        let above = parent.as_ref().and_then(|parent| self.features.feature(parent).ok());
        let (depth, (config, version)) = (above.map_or(0, |it| it.depth + 1), self.config());
        let rules = config.rules();
        self.add(FeatureCreated {
            title: title.map_or_else(|| feature.feature.to_string(), String::from),
            feature,
            agent: primary(),
            kind: kind.unwrap_or(Kind::Feature),
            priority: 0,
            dependencies: vec![],
            rules,
            version,
            parent,
            depth,
            time_box_ms: None,
        });
    }

    /// Takes a line of a new feature; false if it names none. If it names an edge of the parent that is open, the
    /// feature is born there.
    fn spawn(&mut self, line: &Foreign) -> bool {
        let project = self.project;
        let Some(child) = child(line, project).filter(|child| !self.features.has(child)) else {
            return false;
        };
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
            if let Some(edge) = at {
                let claim = self.claim(&edge);
                self.add(SpawnCreated {
                    edge,
                    agent: primary(),
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
        true
    }

    /// Takes a line of a feature that is folded back; false if it was born at no edge, or was folded back before.
    fn fold_back(&mut self, line: &Foreign) -> bool {
        let child = child(line, self.project);
        let Some((child, edge)) =
            child.and_then(|child| Some((child.clone(), self.born.get(&child)?.clone())))
        else {
            return false;
        };
        if self.edges.edge(&edge).spawned(&child) != Some(false) {
            return false;
        }
        // The line itself: it need not say where a file is, and what its hash is.
        let uri = format!("import:{}", line.id()).try_into().expect("a short text");
        let payload = Artifact { uri, sha256: line.sha256.clone() };
        let outcome = SpawnOutcome::Done;
        self.add(SpawnFoldedBack { edge, agent: primary(), child, outcome, payload });
        true
    }
}

/// The feature that a line says is born or folded back.
fn child(line: &Foreign, project: &ProjectId) -> Option<FeatureRef> {
    let child = line.feature(project, &["child", "child_vector"]);
    child.or_else(|| line.feature(project, &["feature"]))
}

fn primary() -> AgentId {
    PRIMARY.parse().expect("a name")
}

/// A graph of the edges of the lines, in their order. No edge waits for another one, because no line says that it
/// does.
///
/// # Errors
/// The lines have no edge, or more edges than a graph may have.
fn graph(project: &ProjectId, lines: &[Foreign]) -> Result<Config> {
    let mut edges = Vec::new();
    for (EdgeRef { name, .. }, _) in lines.iter().filter_map(|line| line.work(project)) {
        if !edges.contains(&name) {
            edges.push(name);
        }
    }
    let edges: Vec<_> = edges.iter().map(|edge| json!({ "edge": edge })).collect();
    let config = serde_json::from_value(json!({ "edges": edges })).map_err(anyhow::Error::from);
    let config = config.and_then(|config: Config| Ok(config.check().map(|()| config)?));
    config.context(
        "the edges of the file make no graph: begin the project with `ringfence project do init-project --local`, \
         and import then",
    )
}
