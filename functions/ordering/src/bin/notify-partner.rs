fn main() -> std::process::ExitCode {
    ringfence_reactors::run::<ordering::notify_partner::NotifyPartner>()
}
