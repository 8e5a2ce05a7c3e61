use std::process::ExitCode;

fn main() -> ExitCode {
    ringfence_new::main()
}
