//! Checks for the tests of a stack.
//!
//! [`checks!`] makes the tests that every stack has, from [`check_cases`], [`check_bad_input`], [`check_functions`],
//! [`check_roles`], [`check_rooms`], [`check_callers`], [`check_schemas`], [`check_api`] and the checks of the readers'
//! roles. [`Dynamo`] is the embedded DynamoDB with the tables of the template, on which cases run. [`check_role`] is
//! for the functions of a stack that are not slices. Each check names all that it finds at once. Under `UPDATE=1` the
//! checks write what they can: `template.yaml`, samples into `events/`, additions into the locks, the documents of the
//! API into `docs/api`, and the map into `docs`.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

extern crate ringfence_core as ringfence; // the derive macros use this name

mod bodies;
mod callers;
mod canary;
mod cases;
mod checks;
mod contract;
mod deadlines;
mod dynamo;
mod functions;
mod grants;
mod lanes;
mod listed;
mod payloads;
mod prepared;
mod readers;
mod requests;
mod roles;
mod rooms;
mod samples;
mod schemas;
pub mod template;
mod variables;
#[cfg(test)]
mod vaults;
mod written;

pub use callers::check_callers;
pub use cases::check_cases;
pub use contract::check_api;
pub use dynamo::Dynamo;
pub use functions::check_functions;
pub use lanes::check_roles_of_reactors;
pub use payloads::check_bad_input;
pub use prepared::tips_of;
pub use readers::{
    check_role_of_index_events, check_role_of_project_views, check_role_of_query_views,
};
pub use requests::check_role;
pub use roles::check_roles;
pub use rooms::check_rooms;
pub use schemas::check_schemas;
