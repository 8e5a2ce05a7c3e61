//! `ringfence-new`: writes a new stack, for somebody who has no stack and so no `ringfence` of its own.

fn main() -> std::process::ExitCode {
    ringfence_cli::run_new()
}
