fn main() -> std::process::ExitCode {
    ringfence::function::run::<ringfence::view::query_views::QueryViews>(stack::stack().views())
}
