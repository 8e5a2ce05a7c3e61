fn main() -> std::process::ExitCode {
    ringfence::run::<catalog::add_product::AddProduct>()
}
