fn main() -> std::process::ExitCode {
    ringfence::run::<customers::transfer_points::TransferPoints>()
}
