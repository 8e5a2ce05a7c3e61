fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<shop::ship_order::ShipOrder>()
}
