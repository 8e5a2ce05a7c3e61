fn main() -> std::process::ExitCode {
    ringfence::run::<projects::create_feature::CreateFeature>()
}
