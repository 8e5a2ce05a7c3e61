fn main() -> std::process::ExitCode {
    ringfence::run::<customers::change_customer_email::ChangeCustomerEmail>()
}
