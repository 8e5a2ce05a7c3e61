fn main() -> std::process::ExitCode {
    ringfence::function::run::<ringfence::feed::index_events::IndexEvents>(
        projects_stack::stack().logs(),
    )
}
