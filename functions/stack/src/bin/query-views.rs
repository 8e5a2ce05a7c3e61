fn main() -> std::process::ExitCode {
    ringfence_views::query_views::run(stack::stack().views())
}
