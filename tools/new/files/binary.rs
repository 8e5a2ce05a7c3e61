fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<__context__::__module__::__Slice__>()
}
