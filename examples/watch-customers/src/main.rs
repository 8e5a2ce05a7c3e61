fn main() -> std::process::ExitCode {
    ringfence::function::run::<watch_customers::WatchCustomers>(())
}
