//! The parts of `template.yaml` that this machine supports: tables, functions, routes, event source mappings, bus,
//! rules, schedules, queues and buckets.

mod access;
mod arn;
mod build;
mod document;
mod error;
mod intrinsics;
mod model;
mod outputs;
mod role;
mod route;
mod shapes;
#[cfg(test)]
mod tests;

pub use self::access::{Excess, Fix, LackingPermission, Part, Permission};
pub(crate) use self::build::last_part;
pub use self::document::Template;
pub use self::error::TemplateError;
pub use self::intrinsics::{ACCOUNT, REGION, STACK};
pub use self::model::{
    DeliveryTarget, FunctionResource, Mapping, Model, QueueMapping, QueueResource, RedriveTarget,
    Retries, Rule, Schedule, TableResource,
};
pub use self::role::{Role, excess};
pub use self::route::Route;
pub(crate) use self::route::{ANY, DEFAULT};
