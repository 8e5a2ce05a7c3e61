use projects_stack::SharedProjects;
use ringfence_services::automations::{Ordered, ReactInOrder};

fn main() -> std::process::ExitCode {
    ringfence::function::run::<ReactInOrder>(Ordered::of::<SharedProjects>())
}
