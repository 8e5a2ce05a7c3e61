fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<invoices::create_invoice::CreateInvoice>()
}
