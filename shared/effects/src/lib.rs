//! Effects that many stacks need: mails and webhooks.
//!
//! A reactor plans an effect as data, and carries it out with a [`Mailer`] or a [`Webhook`]. After a failure both say
//! whether the effect can still happen, never will, or may have happened. Both send the key of the delivery along, so
//! that a receiver recognizes a repeat. `docs/effects.md` is the page about them.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod cause;
mod key;
mod mail;
mod secret;
#[cfg(test)]
mod testing;
mod webhook;

pub use mail::{Mail, MailConfig, Mailer};
pub use webhook::{Webhook, WebhookConfig, WebhookError};
