fn main() -> std::process::ExitCode {
    ringfence::run::<carts::check_out::CheckOut>()
}
