fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<projects::request_review::RequestReview>()
}
