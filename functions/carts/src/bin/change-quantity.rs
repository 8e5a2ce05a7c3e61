fn main() -> std::process::ExitCode {
    ringfence::run::<carts::change_quantity::ChangeQuantity>()
}
