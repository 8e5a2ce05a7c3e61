fn main() -> std::process::ExitCode {
    ringfence::run::<courses::unsubscribe_student::UnsubscribeStudent>()
}
