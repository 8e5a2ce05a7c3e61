fn main() -> std::process::ExitCode {
    ringfence::run::<payments::request_payment::RequestPayment>()
}
