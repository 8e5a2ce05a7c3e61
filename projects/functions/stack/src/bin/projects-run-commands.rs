use projects_stack::SharedProjects;
use ringfence_services::queue::{QueuedSlices, RunCommands};

fn main() -> std::process::ExitCode {
    ringfence::function::run::<RunCommands>(QueuedSlices::of::<SharedProjects>())
}
