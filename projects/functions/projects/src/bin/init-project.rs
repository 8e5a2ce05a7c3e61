fn main() -> std::process::ExitCode {
    ringfence::run::<projects::init_project::InitProject>()
}
