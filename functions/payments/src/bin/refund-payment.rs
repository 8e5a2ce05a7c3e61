fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<payments::refund_payment::RefundPayment>()
}
