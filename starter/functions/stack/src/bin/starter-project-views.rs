use ringfence_services::project_views::ProjectViews;
use starter_stack::stack;

fn main() -> std::process::ExitCode {
    ringfence::function::run::<ProjectViews>(stack().folded())
}
