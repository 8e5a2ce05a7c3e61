fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<catalog::change_product_name::ChangeProductName>()
}
