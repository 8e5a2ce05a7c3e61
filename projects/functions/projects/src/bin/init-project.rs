fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::init_project::InitProject>()
}
