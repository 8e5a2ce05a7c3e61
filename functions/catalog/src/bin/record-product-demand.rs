fn main() -> std::process::ExitCode {
    ringfence::run::<catalog::record_product_demand::RecordProductDemand>()
}
