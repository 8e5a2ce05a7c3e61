fn main() -> std::process::ExitCode {
    ringfence::run::<inventory::release_stock::ReleaseStock>()
}
