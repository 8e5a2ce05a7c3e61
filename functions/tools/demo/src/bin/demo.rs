fn main() -> std::process::ExitCode {
    demo::demo()
}
