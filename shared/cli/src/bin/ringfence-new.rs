//! `ringfence-new`: writes a stack, where there is none yet whose own `ringfence` would do it.

fn main() -> std::process::ExitCode {
    ringfence_cli::run_new()
}
