//! Makes events of the context from the lines of another program, in their order.
//!
//! Another program may not record the beginning of a feature, or of the work on an edge. Then it is added before the
//! first line that needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use anyhow::{Context, Result, ensure};
use projects::{
    AgentId, ClaimId, Config, EdgeEvent, EdgeRef, EdgeReopened, EdgeStarted, Edges, FeatureCreated,
    FeatureReconfigured, FeatureRef, Features, Kind, Mode, Project, ProjectId, ProjectInitialized,
    Projects,
};
use ringfence_core::{
    BoundaryId, Catalog, Context as _, Event, Metadata, NewEvent, Reads, SequencedEvent, State,
    Text,
};
use serde_json::{Value, json};

use super::foreign::Foreign;

/// Why a line is kept as it is.
pub(super) type Why = String;

/// A project as it is after the lines so far.
pub(crate) struct Importer<'a> {
    pub(super) project: &'a ProjectId,
    catalog: Catalog,
    configured: Project,
    pub(super) features: Features,
    pub(super) edges: Edges,
    /// The edges at which features were born.
    pub(super) born: BTreeMap<FeatureRef, EdgeRef>,
    /// Events that are added once: checkpoints, releases, intents, comparisons and rejections of claims.
    said: BTreeSet<String>,
    /// The beginning of the project, if no line has begun it yet.
    begins: Option<ProjectInitialized>,
    /// The events since the last line.
    events: Vec<NewEvent>,
}

impl<'a> Importer<'a> {
    /// A project with these events. Without any it begins with the first line, and its graph has the edges of the
    /// lines.
    ///
    /// # Errors
    /// The project's graph lacks an edge of the lines or can't have all of them.
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
            said: BTreeSet::new(),
            begins: None,
            events: Vec::new(),
        };
        for event in before {
            importer.follow(event)?;
        }
        if importer.configured.config(project).is_err() {
            let (project, config) = (project.clone(), graph(project, lines)?);
            let agent = AgentId::default();
            importer.begins = Some(ProjectInitialized { project, agent, config });
        }
        let config = importer.begins.as_ref().map_or_else(
            || importer.configured.config(project).map(|(config, _)| config),
            |begins| Ok(&begins.config),
        )?;
        for line in lines {
            let Some(EdgeRef { name, .. }) = line.edge(project).filter(|_| line.is_work()) else {
                continue;
            };
            ensure!(
                config.edges.iter().any(|rule| rule.edge == name),
                "line {}: the graph of {project} has no edge {name}: add it with `reconfigure-project`",
                line.number
            );
        }
        Ok(importer)
    }

    /// Begins the project, if no line has begun it yet. Returns whether it did.
    pub(super) fn begin(&mut self) -> bool {
        let begins = self.begins.take();
        let is_new = begins.is_some();
        begins.into_iter().for_each(|begins| self.add(begins));
        is_new
    }

    /// The events since the last call.
    pub(super) fn happened(&mut self) -> Vec<NewEvent> {
        mem::take(&mut self.events)
    }

    pub(super) fn config(&self) -> (&Config, u64) {
        self.configured.config(self.project).expect("the importer begins the project")
    }

    /// The agent of a line. In single mode there is one.
    pub(super) fn agent(&self, line: &Foreign) -> AgentId {
        match self.config().0.mode {
            Mode::Single => AgentId::default(),
            Mode::Multi => line.agent().unwrap_or_default(),
        }
    }

    /// Whether a feature has an edge, or takes it with the rules of the project.
    pub(super) fn has_edge(&self, of: &EdgeRef) -> bool {
        let (config, _) = self.config();
        self.features.rule(of).is_ok() || config.edges.iter().any(|rule| rule.edge == of.name)
    }

    pub(super) fn add<E: Event>(&mut self, event: E) {
        self.push(event.into());
    }

    fn push(&mut self, event: NewEvent) {
        let NewEvent { event_type, tags, data } = event.clone();
        let sequenced = SequencedEvent {
            partition: BoundaryId::tagless(),
            slot: 1,
            // Nothing here depends on the time.
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

    /// Adds an event that is added once.
    ///
    /// # Errors
    /// It was added before.
    pub(super) fn add_once<E: Event>(&mut self, event: E) -> Result<(), Why> {
        let event: NewEvent = event.into();
        let said = said_once(&event.event_type, &event.data);
        if said.is_some_and(|said| self.said.contains(&said)) {
            return Err("the project has this already".to_owned());
        }
        self.push(event);
        Ok(())
    }

    fn follow(&mut self, event: &SequencedEvent) -> Result<()> {
        self.said.extend(said_once(&event.event_type, &event.data));
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

    /// The claim under which an agent works on an edge. If nobody holds the edge, its work begins here, and the feature
    /// begins before it. A feature that lacks the edge takes the project's rules, which have it. An edge that was done
    /// is opened again.
    ///
    /// # Errors
    /// Another agent holds the edge.
    pub(super) fn claim(&mut self, of: &EdgeRef, agent: &AgentId) -> Result<ClaimId, Why> {
        let edge = self.edges.edge(of);
        if let Some(claim) = edge.current() {
            return match claim.agent == *agent {
                true => Ok(claim.id.clone()),
                false => Err(format!("{} holds the edge", claim.agent)),
            };
        }
        let rules = self.features.feature(&of.feature).ok().map(|feature| &feature.rules);
        match rules.map(|rules| rules.edge(&of.name).is_some()) {
            None => self.create(of.feature.clone(), None, None),
            Some(false) => {
                let (config, version) = self.config();
                let (feature, rules) = (of.feature.clone(), config.rules());
                self.add(FeatureReconfigured { feature, agent: agent.clone(), rules, version });
            }
            Some(true) => {}
        }
        let edge = self.edges.edge(of);
        let (epoch, run, is_converged) = (edge.next_epoch(), edge.run(), edge.is_converged());
        let mut ids = (epoch..).map(|n| format!("import-{n}").parse().expect("a name"));
        let claim: ClaimId =
            ids.find(|id| edge.claim(id).is_none()).expect("an edge has few claims");
        if is_converged {
            let is_done = self.features.is_done(&of.feature);
            self.add(EdgeReopened {
                edge: of.clone(),
                agent: agent.clone(),
                run: run + 1,
                reason: "work went on".to_owned(),
                reopens_feature: is_done,
            });
        }
        let (config, _) = self.config();
        let lease_ms = (config.mode == Mode::Multi).then_some(config.lease_ms);
        self.add(EdgeStarted {
            edge: of.clone(),
            agent: agent.clone(),
            claim: claim.clone(),
            epoch,
            run: run + u32::from(is_converged),
            principal: None,
            lease_ms,
            stuck_after: config.stuck_after,
        });
        Ok(claim)
    }

    pub(super) fn create(
        &mut self,
        feature: FeatureRef,
        parent: Option<FeatureRef>,
        line: Option<&Foreign>,
    ) {
        let title: Option<Text<200>> = line
            .and_then(|line| line.text(&["title"]))
            .and_then(|title| title.to_owned().try_into().ok());
        let kind = line.and_then(|line| line.member(&["kind", "vector_type"]));
        let kind = kind.and_then(|kind| serde_json::from_value(kind.clone()).ok());
        let above = parent.as_ref().and_then(|parent| self.features.feature(parent).ok());
        let (depth, (config, version)) = (above.map_or(0, |it| it.depth + 1), self.config());
        let rules = config.rules();
        let agent = line.map_or_else(AgentId::default, |line| self.agent(line));
        self.add(FeatureCreated {
            title: title.map_or_else(|| feature.feature.to_string(), String::from),
            feature,
            agent,
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
}

/// The key of an event that is added once.
fn said_once(event_type: &str, data: &Value) -> Option<String> {
    let members: &[&str] = match event_type {
        "CheckpointCreated" => &["sha256"],
        "ReleaseCreated" => &["version"],
        "IntentRaised" => &["intent"],
        "GapsValidated" => &["intent", "asOf"],
        "ClaimRejected" => &["edge", "agent", "epoch"],
        _ => return None,
    };
    let members = members.iter().map(|member| data[*member].to_string());
    Some([event_type.to_owned()].into_iter().chain(members).collect::<Vec<_>>().join(" "))
}

/// A graph of the edges of the lines, in their order. No edge waits for another one, because lines don't tell that.
///
/// # Errors
/// The lines have no edge, or more edges than a graph may have.
fn graph(project: &ProjectId, lines: &[Foreign]) -> Result<Config> {
    let mut edges = Vec::new();
    for line in lines.iter().filter(|line| line.is_work()) {
        let name = line.edge(project).map(|edge| edge.name);
        edges.extend(name.filter(|name| !edges.contains(name)));
    }
    let edges: Vec<_> = edges.iter().map(|edge| json!({ "edge": edge })).collect();
    let config = serde_json::from_value(json!({ "edges": edges })).map_err(anyhow::Error::from);
    let config = config.and_then(|config: Config| Ok(config.check().map(|()| config)?));
    config.context(
        "the edges of the file make no graph: begin the project with `ringfence project do init-project --local`, \
         and import then",
    )
}
