fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<ordering::place_order::PlaceOrder>()
}
