fn main() -> std::process::ExitCode {
    ringfence::run::<projects::add_dependency::AddDependency>()
}
