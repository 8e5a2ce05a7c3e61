fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::add_dependency::AddDependency>()
}
