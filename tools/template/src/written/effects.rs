//! The effects for which parameters, conditions and variables are written: those that the library has.

use ringfence_stack::ReactorInfo;

/// Mails, or webhooks.
pub(super) struct Effect {
    /// Its word in `files/`.
    pub(super) word: &'static str,
    /// A reactor that requires this variable has the effect.
    marker: &'static str,
    /// The reactor is deployed under this condition.
    condition: &'static str,
    /// The variables of the reactor.
    pub(super) variables: &'static str,
}

const EFFECTS: [Effect; 2] = [
    Effect {
        word: "mail",
        marker: "MAIL_FROM",
        condition: "HasMail",
        variables: "MAIL_FROM: !Ref MailFrom, SMTP_URL_PARAMETER: !Ref SmtpUrlParameter",
    },
    Effect {
        word: "webhook",
        marker: "WEBHOOK_URL",
        condition: "HasWebhook",
        variables: "WEBHOOK_URL: !Ref WebhookUrl, WEBHOOK_PRIVATE: !Ref WebhookPrivate,\n        \
                    WEBHOOK_SECRETS_PARAMETER: !Ref WebhookSecretsParameter",
    },
];

/// The effects of a reactor.
pub(super) fn effects(reactor: &ReactorInfo) -> impl Iterator<Item = &'static Effect> {
    let required = (reactor.variables)().required;
    EFFECTS.iter().filter(move |effect| required.contains(effect.marker))
}

/// The words for the effects of a reactor: `mail`, `webhook`. Its other effects are not known.
pub fn effect_words(reactor: &ReactorInfo) -> impl Iterator<Item = &'static str> {
    effects(reactor).map(|effect| effect.word)
}

/// The condition under which a reactor is deployed.
pub(super) fn condition_of(reactor: &ReactorInfo) -> Option<&'static str> {
    match effects(reactor).collect::<Vec<_>>()[..] {
        [] => None,
        [effect] => Some(effect.condition),
        _ => Some("HasMailAndWebhook"),
    }
}
