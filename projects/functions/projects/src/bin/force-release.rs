fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::force_release::ForceRelease>()
}
