fn main() -> std::process::ExitCode {
    ringfence::run::<pricing::order_products::OrderProducts>()
}
