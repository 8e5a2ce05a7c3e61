fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::create_checkpoint::CreateCheckpoint>()
}
