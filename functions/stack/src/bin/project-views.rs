fn main() -> std::process::ExitCode {
    ringfence_views::project_views::run(stack::stack().views())
}
