fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::record_review::RecordReview>()
}
