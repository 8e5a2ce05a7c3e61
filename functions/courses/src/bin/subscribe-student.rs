fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<courses::subscribe_student::SubscribeStudent>()
}
