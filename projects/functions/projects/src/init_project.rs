//! InitProject: begins a project.
//!
//! The boundary is the project: of two that begin it at once, one wins.

use ringfence::prelude::*;

use crate::{
    Act, AgentId, Config, Project, ProjectId, ProjectInitialized, Projects, Rejection, who,
};

/// Begins a project.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct InitProject {
    #[tag(key = "project", cross_partition)]
    pub project: ProjectId,
    #[serde(default)]
    pub agent: AgentId,
    pub config: Config,
}

impl Slice for InitProject {
    const NAME: &'static str = "init-project";
    type Context = Projects;
    type State = Project;
    type Writes = ProjectInitialized;
    type Rejection = Rejection;

    fn decide(
        &self,
        known: &Project,
        context: &CommandContext,
    ) -> Result<Vec<ProjectInitialized>, Rejection> {
        let Self { project, agent, config } = self.clone();
        match known.config(&project) {
            Ok((of_now, _)) if *of_now == config => Ok(vec![]),
            Ok(_) => Err(Rejection::ProjectExists { project }),
            Err(_) => {
                config.check()?;
                config.mode.check(&agent)?;
                config.permit(&who(context, &agent), Act::Init)?;
                Ok(vec![ProjectInitialized { project, agent, config }])
            }
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{edge_rule, initialized, multi, single};
        use crate::{EdgeRule, ForeignRecorded, LEASE_MS_MAX, Reserved};

        let init = |config| InitProject { project: id("shop"), agent: id("ada"), config };
        let bad = |config, field: &str, problem: &str| {
            let (field, problem) = (field.to_owned(), problem.to_owned());
            given([]).when(init(config)).then_rejected(Rejection::BadConfig { field, problem })
        };
        let edges = |edges: Vec<EdgeRule>| Config {
            edges: edges.try_into().expect("few edges"),
            ..multi()
        };
        let strict = || Config {
            reserved: Reserved { init: Some([id("guest")].into()), ..Reserved::default() },
            ..multi()
        };
        vec![
            given([]).when(init(multi())).then([initialized(multi())]),
            given([]).when(init(single())).then([initialized(single())]),
            // Lines that an import does not know do not begin a project.
            given(events![ForeignRecorded {
                project: id("shop"),
                line: "4f9a/1".to_owned(),
                event_type: "SprintPlanned".to_owned(),
                data: serde_json::json!({ "days": 14 }),
                why: Some("no event of a project is of this type".to_owned()),
            }])
            .when(init(multi()))
            .then([initialized(multi())]),
            given(events![initialized(multi())]).when(init(multi())).then_nothing(),
            given(events![initialized(multi())])
                .when(init(single()))
                .then_rejected(Rejection::ProjectExists { project: id("shop") }),
            // The configuration says which of its callers may begin with it.
            given([])
                .when(init(strict()))
                .then_rejected(Rejection::Reserved { act: Act::Init, roles: vec![id("guest")] }),
            given([]).when(init(strict())).by("direct:carl").then([initialized(strict())]),
            given([]).when(init(strict())).by("direct:eve").then([initialized(strict())]),
            given([])
                .when(InitProject { agent: AgentId::default(), ..init(multi()) })
                .then_rejected(Rejection::AgentMissing),
            given([])
                .when(InitProject { agent: AgentId::default(), ..init(single()) })
                .then([ProjectInitialized { agent: AgentId::default(), ..initialized(single()) }]),
            bad(edges(vec![]), "edges", "must have 1 to 30 edges"),
            bad(edges(vec![edge_rule("a", &[]), edge_rule("a", &[])]), "edges", "has a twice"),
            bad(edges(vec![edge_rule("a", &["b"])]), "edges", "a comes after b, which is missing"),
            bad(
                edges(vec![edge_rule("a", &["c"]), edge_rule("b", &["a"]), edge_rule("c", &["b"])]),
                "edges",
                "a comes after itself",
            ),
            bad(
                edges(vec![edge_rule("a", &[]), edge_rule("b", &["a", "a"])]),
                "edges",
                "b comes after a twice",
            ),
            bad(
                edges(vec![edge_rule("requirements_design", &[])]),
                "authority",
                "names the edge design_code, which the graph lacks",
            ),
            bad(
                Config { roles: [("x".repeat(129), id("human"))].into(), ..multi() },
                "roles",
                "may have 200 entries, whose names have 1 to 128 bytes each",
            ),
            bad(
                Config { lease_ms: LEASE_MS_MAX + 1, ..multi() },
                "leaseMs",
                "must be 1000 to 86400000, is 86400001",
            ),
            bad(
                Config {
                    reserved: Reserved {
                        reopen: Some((0..=200).map(|n| id(&format!("role-{n}"))).collect()),
                        ..Reserved::default()
                    },
                    ..multi()
                },
                "reserved",
                "may name 200 roles for each act",
            ),
            bad(Config { stuck_after: 0, ..multi() }, "stuckAfter", "must be at least 1"),
            bad(
                Config { roles: [].into(), ..multi() },
                "roles",
                "in multi mode somebody needs the role human, who may do everything",
            ),
        ]
    }
}
