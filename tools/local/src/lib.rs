//! The whole stack on one machine, made from `template.yaml`: an embedded DynamoDB with streams, the functions as
//! processes under a Lambda runtime API, the template's routes, event source mappings, bus, rules, schedules, queues
//! and buckets. It needs no AWS account, no Docker and no Java.
//!
//! The template decides what is started. It guesses nothing: any part that it does not understand is an error that
//! names the resource and the property.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

pub mod api;
pub mod authorizer;
pub mod bridge;
pub mod buckets;
pub mod bus;
mod clock;
mod delivery;
pub mod destinations;
pub mod embedded;
pub mod engine;
mod engine_server;
pub mod environment;
mod forms;
mod forward;
pub mod functions;
mod gateway;
mod guard;
pub mod inbox;
pub mod invoke;
mod kept;
mod keys;
mod message;
pub mod notices;
mod outside;
pub mod pattern;
mod port;
pub mod programs;
pub mod queue_poller;
pub mod queues;
mod routes;
mod run;
mod runtime;
pub mod s3;
mod sam;
mod schedule;
pub mod services;
pub mod stack;
pub mod stack_clock;
pub mod stream;
pub mod template;
pub mod times;
mod tokens;
pub mod walker;
mod workspace;

pub use run::{FunctionByName, run};
pub use stack::Console;
pub use workspace::{stack_root, workspace_root};
