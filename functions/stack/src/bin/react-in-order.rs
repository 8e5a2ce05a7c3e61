use ringfence_automations::{Ordered, ReactInOrder};

fn main() -> std::process::ExitCode {
    ringfence_function::run::<ReactInOrder>(Ordered::of::<stack::Shop>())
}
