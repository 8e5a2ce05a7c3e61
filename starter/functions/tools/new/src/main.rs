fn main() -> std::process::ExitCode {
    ringfence_new::main()
}
