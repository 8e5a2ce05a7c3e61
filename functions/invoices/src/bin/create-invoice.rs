fn main() -> std::process::ExitCode {
    ringfence::run::<invoices::create_invoice::CreateInvoice>()
}
