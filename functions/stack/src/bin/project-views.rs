fn main() -> std::process::ExitCode {
    ringfence::function::run::<ringfence_services::project_views::ProjectViews>(
        stack::stack().folded(),
    )
}
