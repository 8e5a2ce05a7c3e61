fn main() -> std::process::ExitCode {
    ringfence_function::run::<ringfence_views::query_views::QueryViews>(stack::stack().views())
}
