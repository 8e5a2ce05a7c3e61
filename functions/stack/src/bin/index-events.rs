fn main() -> std::process::ExitCode {
    ringfence_feed::index_events::run(stack::stack().catalog)
}
