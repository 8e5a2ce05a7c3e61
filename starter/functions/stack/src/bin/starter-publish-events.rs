use ringfence_services::topic::PublishEvents;
use starter_stack::stack;

fn main() -> std::process::ExitCode {
    ringfence::function::run::<PublishEvents>(stack().logs())
}
