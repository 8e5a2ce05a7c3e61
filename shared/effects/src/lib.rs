//! Effects that many stacks need: mails and webhooks.
//!
//! A reactor plans an effect as data, and carries it out with a [`Mailer`] or a [`Webhook`]. Both say of a failure whether
//! the effect can still happen, never will, or may have happened. Both mark what they send by the key of its delivery, so
//! that a receiver recognizes a repeat. `docs/effects.md` is the page about them.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod aws;
mod mail;
mod secret;
#[cfg(test)]
mod testing;
mod webhook;

use sha2::{Digest, Sha256};

pub use mail::{AddressError, Mail, MailAddress, MailConfig, Mailer};
pub use secret::SecretError;
pub use webhook::{Webhook, WebhookConfig, WebhookError};

/// The key of a delivery as a receiver sees it: 32 digits. They are the same each time that the effect is carried out, and
/// fit wherever an id does.
fn id(key: &str) -> String {
    Sha256::digest(key).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
