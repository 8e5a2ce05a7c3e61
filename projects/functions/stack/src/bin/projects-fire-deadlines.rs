use projects_stack::SharedProjects;
use ringfence_services::deadlines::{Deadlines, FireDeadlines};

fn main() -> std::process::ExitCode {
    ringfence::function::run::<FireDeadlines>(Deadlines::of::<SharedProjects>())
}
