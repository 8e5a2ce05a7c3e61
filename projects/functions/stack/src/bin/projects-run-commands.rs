use ringfence_queue::{QueuedSlices, RunCommands};
use projects_stack::SharedProjects;

fn main() -> std::process::ExitCode {
    ringfence_function::run::<RunCommands>(QueuedSlices::of::<SharedProjects>())
}
