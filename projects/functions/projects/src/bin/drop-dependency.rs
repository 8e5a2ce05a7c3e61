fn main() -> std::process::ExitCode {
    ringfence::run::<projects::drop_dependency::DropDependency>()
}
