fn main() -> std::process::ExitCode {
    ringfence_views::project_views::run(projects_stack::stack().views())
}
