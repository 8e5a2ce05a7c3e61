fn main() -> std::process::ExitCode {
    ringfence::run::<payments::record_payment::RecordPayment>()
}
