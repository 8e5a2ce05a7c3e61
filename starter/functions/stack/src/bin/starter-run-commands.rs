use ringfence_services::queue::{QueuedSlices, RunCommands};
use starter_stack::Contexts;

fn main() -> std::process::ExitCode {
    ringfence::function::run::<RunCommands>(QueuedSlices::of::<Contexts>())
}
