fn main() -> std::process::ExitCode {
    ringfence_function::run::<ringfence_feed::index_events::IndexEvents>(
        projects_stack::stack().catalog,
    )
}
