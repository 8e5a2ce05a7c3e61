use ringfence_views::query_views::QueryViews;
use starter_stack::stack;

fn main() -> std::process::ExitCode {
    ringfence_function::run::<QueryViews>(stack().views())
}
