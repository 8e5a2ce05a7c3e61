fn main() -> std::process::ExitCode {
    ringfence_function::run::<watch_customers::WatchCustomers>(())
}
