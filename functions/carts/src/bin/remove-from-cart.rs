fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<carts::remove_from_cart::RemoveFromCart>()
}
