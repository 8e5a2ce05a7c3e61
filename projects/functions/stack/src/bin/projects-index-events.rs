fn main() -> std::process::ExitCode {
    ringfence_feed::index_events::run(projects_stack::stack().catalog)
}
