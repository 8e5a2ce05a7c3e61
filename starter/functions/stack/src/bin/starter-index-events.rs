use ringfence_feed::index_events::IndexEvents;
use starter_stack::stack;

fn main() -> std::process::ExitCode {
    ringfence_function::run::<IndexEvents>(stack().catalog)
}
