fn main() -> std::process::ExitCode {
    ringfence::run::<projects::reconfigure_feature::ReconfigureFeature>()
}
