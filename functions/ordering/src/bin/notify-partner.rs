fn main() -> std::process::ExitCode {
    ringfence::reactor::run::<ordering::notify_partner::NotifyPartner>()
}
