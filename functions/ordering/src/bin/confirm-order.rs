fn main() -> std::process::ExitCode {
    ringfence_reactors::run::<ordering::confirm_order::ConfirmOrder>()
}
