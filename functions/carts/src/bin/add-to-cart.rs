fn main() -> std::process::ExitCode {
    ringfence::run::<carts::add_to_cart::AddToCart>()
}
