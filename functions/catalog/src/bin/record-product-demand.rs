fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<catalog::record_product_demand::RecordProductDemand>()
}
