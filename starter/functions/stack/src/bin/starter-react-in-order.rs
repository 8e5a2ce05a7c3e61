use ringfence_services::automations::{Ordered, ReactInOrder};
use starter_stack::Contexts;

fn main() -> std::process::ExitCode {
    ringfence::function::run::<ReactInOrder>(Ordered::of::<Contexts>())
}
