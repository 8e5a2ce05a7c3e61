fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<customers::change_customer_email::ChangeCustomerEmail>()
}
