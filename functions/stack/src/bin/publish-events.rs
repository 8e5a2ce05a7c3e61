fn main() -> std::process::ExitCode {
    ringfence_topic::run(stack::stack().catalog)
}
