fn main() -> std::process::ExitCode {
    __run__::<__context__::__module__::__Slice__>()
}
