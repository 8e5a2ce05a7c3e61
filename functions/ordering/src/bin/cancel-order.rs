fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<ordering::cancel_order::CancelOrder>()
}
