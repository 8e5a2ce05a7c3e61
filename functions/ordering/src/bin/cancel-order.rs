fn main() -> std::process::ExitCode {
    ringfence::run::<ordering::cancel_order::CancelOrder>()
}
