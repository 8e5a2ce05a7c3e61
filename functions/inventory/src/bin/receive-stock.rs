fn main() -> std::process::ExitCode {
    ringfence::run::<inventory::receive_stock::ReceiveStock>()
}
