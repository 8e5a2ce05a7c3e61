//! The parts that every function shares: its start, its variables, its problems and answers, its log, and its dead
//! letters. They know no slice and no log. A function that is not a slice is a [`Service`].
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

#[cfg(test)]
extern crate ringfence_core as ringfence; // the derive macros use this name

mod answer;
mod batch;
mod bounded;
mod config;
#[cfg(feature = "dead-letters")]
mod dead_letters;
mod line;
mod links;
mod logs;
mod principal;
mod problem;
mod record;
mod request;
mod sender;
mod service;
pub mod slice;
mod start;
mod vault;

pub use answer::http;
pub use aws_lambda_events::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
pub use batch::{delivered, has_time, records, sequence_number, waited_ms};
pub use bounded::bounded;
pub use config::{ConfigError, VariableNames, Variables};
#[cfg(feature = "dead-letters")]
pub use dead_letters::{DeadLetterQueue, DeadLetters, MESSAGE_BYTES_MAX, dead_letter, message};
pub use line::{LogLine, MetricUnit};
pub use links::Links;
pub use logs::{LOGGED_BYTES_MAX, chain};
pub use principal::{Issuers, principal};
pub use problem::Problem;
pub use record::{RecordError, new_image};
pub use request::{query, request};
pub use sender::Sender;
pub use service::{Call, Service, run, variables};
pub use start::start;
pub use tracing::Level;
pub use vault::{VaultNames, vault};
