fn main() -> std::process::ExitCode {
    ringfence::run::<courses::subscribe_student::SubscribeStudent>()
}
