fn main() -> std::process::ExitCode {
    ringfence::run::<inventory::reserve_stock::ReserveStock>()
}
