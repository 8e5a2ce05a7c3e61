fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<courses::unsubscribe_student::UnsubscribeStudent>()
}
