fn main() -> std::process::ExitCode {
    ringfence::function::run::<ringfence::view::project_views::ProjectViews>(
        projects_stack::stack().folded(),
    )
}
