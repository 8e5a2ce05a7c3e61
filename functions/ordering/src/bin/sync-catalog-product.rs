fn main() -> std::process::ExitCode {
    ringfence::run::<ordering::sync_catalog_product::SyncCatalogProduct>()
}
