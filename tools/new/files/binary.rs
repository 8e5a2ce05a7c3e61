fn main() -> std::process::ExitCode {
    ringfence::run::<__context__::__module__::__Slice__>()
}
