fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<inventory::reserve_stock::ReserveStock>()
}
