use ringfence::view::query_views::QueryViews;
use starter_stack::stack;

fn main() -> std::process::ExitCode {
    ringfence::function::run::<QueryViews>(stack().views())
}
