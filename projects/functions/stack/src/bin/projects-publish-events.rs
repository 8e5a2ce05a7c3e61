fn main() -> std::process::ExitCode {
    ringfence_function::run::<ringfence_topic::PublishEvents>(projects_stack::stack().catalog)
}
