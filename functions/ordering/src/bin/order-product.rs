fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<ordering::order_product::OrderProduct>()
}
