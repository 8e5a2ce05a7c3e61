fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<carts::change_quantity::ChangeQuantity>()
}
