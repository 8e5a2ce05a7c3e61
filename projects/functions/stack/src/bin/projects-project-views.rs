fn main() -> std::process::ExitCode {
    ringfence_function::run::<ringfence_views::project_views::ProjectViews>(
        projects_stack::stack().folded(),
    )
}
