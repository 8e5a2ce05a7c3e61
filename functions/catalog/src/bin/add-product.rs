fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<catalog::add_product::AddProduct>()
}
