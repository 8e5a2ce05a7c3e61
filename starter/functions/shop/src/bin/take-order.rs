fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<shop::take_order::TakeOrder>()
}
