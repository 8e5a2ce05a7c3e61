fn main() -> std::process::ExitCode {
    ringfence::run::<ordering::order_product::OrderProduct>()
}
