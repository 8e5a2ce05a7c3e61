fn main() -> std::process::ExitCode {
    ringfence::run::<payments::refund_payment::RefundPayment>()
}
