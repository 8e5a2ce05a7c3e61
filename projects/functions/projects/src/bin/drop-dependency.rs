fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::drop_dependency::DropDependency>()
}
