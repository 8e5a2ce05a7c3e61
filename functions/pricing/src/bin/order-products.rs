fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<pricing::order_products::OrderProducts>()
}
