use ringfence_services::automations::{Ordered, ReactInOrder};
use starter_stack::Shop;

fn main() -> std::process::ExitCode {
    ringfence::function::run::<ReactInOrder>(Ordered::of::<Shop>())
}
