fn main() -> std::process::ExitCode {
    ringfence::run::<shop::take_order::TakeOrder>()
}
