fn main() -> std::process::ExitCode {
    ringfence::function::run::<ringfence::feed::index_events::IndexEvents>(stack::stack().logs())
}
