use ringfence_queue::{QueuedSlices, RunCommands};
use starter_stack::Shop;

fn main() -> std::process::ExitCode {
    ringfence_function::run::<RunCommands>(QueuedSlices::of::<Shop>())
}
