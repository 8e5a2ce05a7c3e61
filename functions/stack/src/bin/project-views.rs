fn main() -> std::process::ExitCode {
    ringfence::function::run::<ringfence::view::project_views::ProjectViews>(
        stack::stack().folded(),
    )
}
