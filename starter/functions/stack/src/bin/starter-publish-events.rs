use ringfence_topic::PublishEvents;
use starter_stack::stack;

fn main() -> std::process::ExitCode {
    ringfence_function::run::<PublishEvents>(stack().catalog)
}
