fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<inventory::receive_stock::ReceiveStock>()
}
