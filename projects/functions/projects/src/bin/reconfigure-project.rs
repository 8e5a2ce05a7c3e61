fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::reconfigure_project::ReconfigureProject>()
}
