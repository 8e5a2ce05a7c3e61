//! A stack's own command line: it knows the contexts and the views of the stack.

fn main() -> std::process::ExitCode {
    ringfence_cli::run(stack::stack())
}
