use ringfence_deadlines::{Deadlines, FireDeadlines};
use starter_stack::Shop;

fn main() -> std::process::ExitCode {
    ringfence_function::run::<FireDeadlines>(Deadlines::of::<Shop>())
}
