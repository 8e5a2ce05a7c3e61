fn main() -> std::process::ExitCode {
    tools::ringfence()
}
