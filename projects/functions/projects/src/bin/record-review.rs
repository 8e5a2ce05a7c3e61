fn main() -> std::process::ExitCode {
    ringfence::run::<projects::record_review::RecordReview>()
}
