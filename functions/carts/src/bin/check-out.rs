fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<carts::check_out::CheckOut>()
}
