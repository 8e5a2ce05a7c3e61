fn main() -> std::process::ExitCode {
    ringfence::run::<projects::request_review::RequestReview>()
}
