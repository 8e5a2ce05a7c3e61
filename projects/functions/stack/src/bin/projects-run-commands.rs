use projects_stack::SharedProjects;
use ringfence_queue::{QueuedSlices, RunCommands};

fn main() -> std::process::ExitCode {
    ringfence_function::run::<RunCommands>(QueuedSlices::of::<SharedProjects>())
}
