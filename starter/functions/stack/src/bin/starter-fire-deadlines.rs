use ringfence_services::deadlines::{Deadlines, FireDeadlines};
use starter_stack::Contexts;

fn main() -> std::process::ExitCode {
    ringfence::function::run::<FireDeadlines>(Deadlines::of::<Contexts>())
}
