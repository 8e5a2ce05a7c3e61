//! Many agents that take the next edge in lock-step: all look at once, and then all claim at once.

use std::collections::{BTreeMap, BTreeSet};

use projects::facts::{converged, created, edge_rule, multi, started};
use projects::views::project_features::ProjectFeatures;
use projects::{
    AgentId, EdgeConverged, EdgeRef, EdgeStarted, FeatureCreated, FeatureRef, FeatureRows, Rules,
    ready_for,
};
use ringfence_core::NewEvent;
use ringfence_core::kit::{BEGIN_MS, id};
use ringfence_views::{fold, kit::sequenced};

const AGENTS: usize = 16;
const EDGES: usize = 60;

#[derive(Default)]
struct Project {
    features: FeatureRows,
    granted: usize,
    rejected: usize,
}

impl Project {
    /// Features that share the edges. The edges of each come one after another.
    fn of(edges_of_feature: usize) -> Self {
        let names: Vec<_> = (0..edges_of_feature).map(|n| format!("edge_{n}")).collect();
        let after =
            |n: usize| names[n.max(1) - 1..n].iter().map(String::as_str).collect::<Vec<_>>();
        let rules = names.iter().enumerate().map(|(n, name)| edge_rule(name, &after(n)));
        let rules = Rules { edges: rules.collect(), ..multi().rules() };
        let mut project = Self::default();
        for n in 0..EDGES / edges_of_feature {
            let feature: FeatureRef = id(&format!("shop/REQ-F-WORK-{n:03}"));
            let rules = rules.clone();
            project.follow(FeatureCreated { feature, rules, ..created("shop/REQ-F-WORK-000") });
        }
        project
    }

    fn follow(&mut self, event: impl Into<NewEvent>) {
        let event = sequenced(0, BEGIN_MS, event.into());
        fold::<ProjectFeatures>(&mut self.features, &crate::world::current(&event)).unwrap();
    }

    /// Each agent that has no work claims the first edge that it finds ready. If several choose the same edge, one gets
    /// it, and the others look again.
    fn claim(&mut self, idle: &mut BTreeSet<AgentId>) -> BTreeMap<EdgeRef, AgentId> {
        let mut work = BTreeMap::new();
        loop {
            let mut chosen = BTreeMap::<EdgeRef, Vec<AgentId>>::new();
            for agent in &*idle {
                if let Some(first) = ready_for(agent, &self.features, BEGIN_MS).into_iter().next() {
                    chosen.entry(first.edge).or_default().push(agent.clone());
                }
            }
            if chosen.is_empty() {
                return work;
            }
            for (edge, agents) in chosen {
                self.granted += 1;
                self.rejected += agents.len() - 1;
                let agent = agents[0].clone();
                idle.remove(&agent);
                self.follow(EdgeStarted {
                    edge: edge.clone(),
                    ..started(&agent.to_string(), "c1", 1)
                });
                work.insert(edge, agent);
            }
        }
    }

    fn finish(&mut self, work: BTreeMap<EdgeRef, AgentId>) -> impl Iterator<Item = AgentId> {
        for edge in work.keys().cloned() {
            self.follow(EdgeConverged { edge, ..converged("shop/REQ-F-WORK-000/edge_0", "c1") });
        }
        work.into_values()
    }
}

#[test]
fn agents_that_take_what_is_next_at_once_are_rejected_at_most_twice_a_grant() {
    for edges_of_feature in [1, 3, 6] {
        let mut project = Project::of(edges_of_feature);
        let mut idle: BTreeSet<AgentId> = (0..AGENTS).map(|n| id(&format!("agent-{n}"))).collect();
        loop {
            let work = project.claim(&mut idle);
            if work.is_empty() {
                break;
            }
            idle.extend(project.finish(work));
        }
        let Project { granted, rejected, .. } = project;
        assert_eq!(granted, EDGES, "{edges_of_feature}");
        assert!(
            rejected <= 2 * granted,
            "{rejected} rejections, {edges_of_feature} edges a feature"
        );
    }
}
