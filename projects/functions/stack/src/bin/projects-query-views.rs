fn main() -> std::process::ExitCode {
    ringfence_views::query_views::run(projects_stack::stack().views())
}
