fn main() -> std::process::ExitCode {
    ringfence::run::<carts::remove_from_cart::RemoveFromCart>()
}
