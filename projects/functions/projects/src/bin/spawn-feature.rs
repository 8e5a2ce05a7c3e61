fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::spawn_feature::SpawnFeature>()
}
