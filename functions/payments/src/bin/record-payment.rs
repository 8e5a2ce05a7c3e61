fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<payments::record_payment::RecordPayment>()
}
