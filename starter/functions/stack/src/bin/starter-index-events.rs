use ringfence::feed::index_events::IndexEvents;
use starter_stack::stack;

fn main() -> std::process::ExitCode {
    ringfence::function::run::<IndexEvents>(stack().logs())
}
