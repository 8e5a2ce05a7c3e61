//! The values that parameters of `ringfence template` have on this machine, so that mails and webhooks stay here.

/// The path at which webhooks arrive.
pub(crate) const WEBHOOKS: &str = "/webhooks";
/// The name of the parameter with the secrets of webhooks.
const SECRETS: &str = "WEBHOOK_SECRETS";
/// The secret that signs webhooks, unless a variable has others.
const SECRET: &str = "whsec_bG9jYWwtbG9jYWwtbG9jYWwtbG9jYWwt";

/// The value of a parameter. `services` is the URL of the local services.
pub(crate) fn parameter(name: &str, services: &str) -> Option<String> {
    Some(match name {
        "MailFrom" => "stack@example.com".to_owned(),
        "MailIdentity" => "example.com".to_owned(),
        "WebhookUrl" => format!("{services}{WEBHOOKS}"),
        "WebhookSecretsParameter" => SECRETS.to_owned(),
        "WebhookPrivate" => "true".to_owned(),
        _ => return None,
    })
}

/// The value of a secret that no variable has.
pub(crate) fn secret(name: &str) -> Option<String> {
    (name == SECRETS).then(|| SECRET.to_owned())
}
