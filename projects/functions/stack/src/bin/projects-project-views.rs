fn main() -> std::process::ExitCode {
    ringfence::function::run::<ringfence_services::project_views::ProjectViews>(
        projects_stack::stack().folded(),
    )
}
