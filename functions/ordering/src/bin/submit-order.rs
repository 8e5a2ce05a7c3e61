fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<ordering::submit_order::SubmitOrder>()
}
