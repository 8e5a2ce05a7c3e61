fn main() -> std::process::ExitCode {
    ringfence::run::<ordering::place_order::PlaceOrder>()
}
