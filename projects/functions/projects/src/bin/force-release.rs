fn main() -> std::process::ExitCode {
    ringfence::run::<projects::force_release::ForceRelease>()
}
