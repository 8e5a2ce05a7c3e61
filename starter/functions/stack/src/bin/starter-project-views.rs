use ringfence_views::project_views::ProjectViews;
use starter_stack::stack;

fn main() -> std::process::ExitCode {
    ringfence_function::run::<ProjectViews>(stack().folded())
}
