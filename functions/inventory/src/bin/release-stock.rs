fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<inventory::release_stock::ReleaseStock>()
}
