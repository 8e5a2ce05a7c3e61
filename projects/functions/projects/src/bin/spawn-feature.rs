fn main() -> std::process::ExitCode {
    ringfence::run::<projects::spawn_feature::SpawnFeature>()
}
