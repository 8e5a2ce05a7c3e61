fn main() -> std::process::ExitCode {
    ringfence::reactor::run::<ordering::confirm_order::ConfirmOrder>()
}
