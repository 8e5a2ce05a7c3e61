//! Where a verdict looks.

use aws_config::SdkConfig;
use clap::Args;
use ringfence_feed::Index;
use ringfence_reactors::ReactorTable;
use ringfence_stack::Stack;
use ringfence_views::{DueReader, ViewReader};

use crate::commands::CommandLines;
use crate::stack::{Named, name};

/// The flags that say where a verdict looks besides the tables.
#[derive(Args, Clone, Debug)]
pub struct VerdictFlags {
    /// The URL of the command queue.
    #[arg(long, env = "COMMAND_QUEUE_URL", value_name = "URL", value_parser = name)]
    pub command_queue: Option<String>,
    /// A dead-letter queue, with a name for people. Repeat the flag for several queues; --stack names all queues of the
    /// stack.
    #[arg(long = "queue", value_name = "NAME=URL")]
    pub queues: Vec<Named>,
    /// A bucket of failed batches, with the name of its function. Repeat the flag for several buckets; --stack names
    /// all buckets of the stack.
    #[arg(long = "bucket", value_name = "FUNCTION=NAME")]
    pub buckets: Vec<Named>,
    /// The lines of functions.
    #[command(flatten)]
    pub commands: CommandLines,
}

/// Where a verdict looks.
pub struct VerdictSources<'s> {
    /// The list of the stack.
    pub stack: &'s Stack,
    /// The index.
    pub index: Index,
    /// The rows of views, the lanes of reactors, and what is due, if their table is named.
    pub views: Option<(ViewReader, ReactorTable, DueReader)>,
    /// The configuration for the clients of queues and buckets.
    pub config: &'s SdkConfig,
    /// Queues, buckets and lines.
    pub flags: &'s VerdictFlags,
}
