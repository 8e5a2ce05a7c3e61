fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<ordering::sync_catalog_product::SyncCatalogProduct>()
}
