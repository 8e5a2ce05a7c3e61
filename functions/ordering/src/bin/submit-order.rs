fn main() -> std::process::ExitCode {
    ringfence::run::<ordering::submit_order::SubmitOrder>()
}
