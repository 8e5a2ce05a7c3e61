fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<customers::transfer_points::TransferPoints>()
}
