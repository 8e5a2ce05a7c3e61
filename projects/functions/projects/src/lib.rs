//! Agents share a project: they divide its work, and see how far it is.
//!
//! A project has features, and a feature goes through the edges of the project's graph, once each. An agent claims an
//! edge, works on it in iterations, and converges it. A claim is the sole right to work on an edge. It has a lease:
//! if the holder stays silent beyond it, another agent may take over the edge. The number of the claim, its epoch, is
//! the fencing token for effects outside of the log.

pub mod add_dependency;
pub mod claim_edge;
pub mod complete_iteration;
pub mod converge_edge;
pub mod create_checkpoint;
pub mod create_feature;
pub mod create_release;
pub mod drop_dependency;
pub mod exchange;
pub mod expire_claim;
pub mod export_projects;
pub mod facts;
pub mod fold_back;
pub mod force_release;
pub mod init_project;
pub mod line;
pub mod ready_work;
pub mod reconfigure_feature;
pub mod reconfigure_project;
pub mod record_review;
pub mod release_edge;
pub mod renew_claim;
pub mod reopen_edge;
pub mod request_review;
pub mod spawn_feature;
pub mod validate_gaps;
pub mod views {
    //! The read models.

    mod holding;
    pub mod project_claims;
    pub mod project_events;
    pub mod project_features;
    pub mod project_status;
    pub mod project_trace;

    pub use holding::{Holder, Holding};
}

mod config;
mod edge;
mod edge_event;
mod events;
mod feature;
mod lease;
mod project;
mod ready;
mod refs;
mod rejection;
mod start;
mod values;

use ringfence::prelude::*;

pub use add_dependency::REACHABLE_MAX;
pub use config::*;
pub use create_feature::DEPENDENCIES_MAX;
pub use edge::*;
pub use edge_event::*;
pub use events::*;
pub use feature::*;
pub use lease::*;
pub use project::*;
pub use ready::*;
pub use refs::*;
pub use rejection::*;
pub use values::*;

ringfence::context! {
    pub Projects, "projects" on Dcb;
    slice add_dependency::AddDependency;
    slice claim_edge::ClaimEdge;
    slice complete_iteration::CompleteIteration;
    slice converge_edge::ConvergeEdge;
    slice create_checkpoint::CreateCheckpoint;
    slice create_feature::CreateFeature;
    slice create_release::CreateRelease;
    slice drop_dependency::DropDependency;
    slice expire_claim::ExpireClaim;
    due expire_claim::ExpireClaim;
    slice fold_back::FoldBack;
    slice force_release::ForceRelease;
    slice init_project::InitProject;
    slice reconfigure_feature::ReconfigureFeature;
    slice reconfigure_project::ReconfigureProject;
    slice record_review::RecordReview;
    slice release_edge::ReleaseEdge;
    slice renew_claim::RenewClaim;
    slice reopen_edge::ReopenEdge;
    slice request_review::RequestReview;
    slice spawn_feature::SpawnFeature;
    slice validate_gaps::ValidateGaps;
    event ForeignRecorded;
    view views::project_claims::ProjectClaims;
    view views::project_events::ProjectEvents;
    view views::project_features::ProjectFeatures;
    view views::project_status::ProjectStatus;
    view views::project_trace::ProjectTrace;
    function export_projects::ExportProjects;
    function ready_work::ReadyWork;
}
