use ringfence_deadlines::{Deadlines, FireDeadlines};

fn main() -> std::process::ExitCode {
    ringfence_function::run::<FireDeadlines>(Deadlines::of::<stack::Shop>())
}
