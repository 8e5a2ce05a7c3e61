fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<carts::add_to_cart::AddToCart>()
}
