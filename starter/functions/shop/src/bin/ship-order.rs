fn main() -> std::process::ExitCode {
    ringfence::run::<shop::ship_order::ShipOrder>()
}
