fn main() -> std::process::ExitCode {
    ringfence::run::<catalog::change_product_price::ChangeProductPrice>()
}
