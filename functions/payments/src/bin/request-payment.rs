fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<payments::request_payment::RequestPayment>()
}
