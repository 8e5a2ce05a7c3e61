//! Commands by a queue: a caller does not wait for the decision, and asks for the answer later.
//!
//! The function run-commands takes commands over HTTP, checks them as the slice's own function does, and puts them into
//! an SQS FIFO queue. The queue invokes the same function, which carries out the commands in its own process, in the
//! order of their groups. A rejection is an answer, and not a failure. A command without an answer is tried again, and
//! holds back the later commands of its group. After [`TRIES_MAX`] tries it is given up, and kept as a dead letter.
//!
//! The state and the answer of a command are one item in the view table ([`CommandAnswers`]), which DynamoDB deletes
//! after fifteen days. The events in the log make the command take effect once; the item makes its answer stay the
//! same.

mod answers;
mod ask;
mod commands;
mod run;
mod run_commands;
mod sqs;

pub use answers::{AnswersError, CommandAnswer, CommandAnswers, CommandState};
pub use commands::QueuedSlices;
pub use run::TRIES_MAX;
pub use run_commands::{CommandsConfig, RunCommands};
pub use sqs::{COMMAND_BYTES_MAX, CommandQueue, SqsCommandQueue, queue_command};
