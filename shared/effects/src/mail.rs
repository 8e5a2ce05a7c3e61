//! Mails, and how they are sent.
//!
//! A [`Mailer`] speaks SMTP with a server, or calls SES, as its variables say. A mail has an id that follows from the
//! key of its delivery. Over SMTP it is the `Message-ID`, so mail programs show a repeat once. SES sets its own
//! `Message-ID`, so the id is in `X-Entity-Ref-ID` too, and in the tag `delivery` of SES's events.

mod ses;
mod smtp;

use std::error::Error;
use std::time::{Duration, UNIX_EPOCH};

use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use ringfence_aws::{CA_BUNDLE, Clock, Trust};
use ringfence_core::{MailAddress, MailAddressError};
use ringfence_lambda::Variables;
use ringfence_reactors::{Delivery, Failed};

use crate::cause::without_addresses;
use crate::key::id;
use crate::secret::Secret;

/// The most bytes of a subject: some lines of a list of mails.
const SUBJECT_BYTES_MAX: usize = 500;
/// The most bytes of a text. For longer ones a mail should have a link.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// A mail, from the stack to one person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Who gets it.
    pub to: MailAddress,
    /// Its subject: one line, at most 500 bytes.
    pub subject: String,
    /// Its text, at most 256 KB.
    pub text: String,
}

/// The configuration of a function's mails, from its variables.
pub struct MailConfig {
    from: String,
    smtp_url: String,
    bundle: String,
}

/// Sends mails.
pub struct Mailer {
    from: Mailbox,
    by: By,
    clock: Clock,
}

enum By {
    Smtp(Box<smtp::Smtp>),
    Ses(ses::Ses),
}

impl Mailer {
    /// Reads the variables: `MAIL_FROM` has the sender, as `shop@example.com` or `Shop <shop@example.com>`.
    /// `SMTP_URL_PARAMETER` names the parameter with the URL of an SMTP server. If it is empty, mails go through SES.
    #[must_use]
    pub fn config(variables: &mut Variables) -> MailConfig {
        MailConfig {
            from: variables.required("MAIL_FROM"),
            smtp_url: variables.optional("SMTP_URL_PARAMETER", String::new()),
            bundle: variables.optional(CA_BUNDLE, String::new()),
        }
    }

    /// Opens it, once for a process.
    ///
    /// # Errors
    /// The sender is not an address, or the environment has no Region or no credentials.
    pub async fn open(config: MailConfig) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let MailConfig { from, smtp_url, bundle } = config;
        let bundle = Some(bundle).filter(|path| !path.is_empty());
        let from = from
            .parse()
            .map_err(|_| "MAIL_FROM is not an address for mail, such as shop@example.com")?;
        let of_amazon = Trust::of_amazon().or_bundle(bundle.as_ref())?;
        let by = match smtp_url.as_str() {
            "" => By::Ses(ses::Ses::open(&of_amazon).await?),
            _ => {
                let url = Secret::open(&of_amazon, smtp_url).await?;
                By::Smtp(Box::new(smtp::Smtp::new(url, Trust::of_machine().or_bundle(bundle)?)))
            }
        };
        Ok(Self { from, by, clock: Clock::system() })
    }

    /// Sends a mail.
    ///
    /// # Errors
    /// The server is not there, has refused the mail, or has not said whether it took it. The cause has no address.
    pub async fn send(&self, mail: &Mail, delivery: &Delivery<'_>) -> Result<(), Failed> {
        let id = id(&delivery.key());
        let message = self.message(mail, &id).map_err(Failed::ForGood)?;
        match &self.by {
            By::Smtp(smtp) => smtp.send(&message).await,
            By::Ses(ses) => ses.send(&message, &id).await,
        }
    }

    /// The mail as it is sent. A control character is refused: it could add a line to the head.
    fn message(&self, mail: &Mail, id: &str) -> Result<Message, String> {
        let Mail { to, subject, text } = mail;
        if subject.len() > SUBJECT_BYTES_MAX || subject.chars().any(char::is_control) {
            return Err(format!(
                "the subject is one line of at most {SUBJECT_BYTES_MAX} bytes, without control characters"
            ));
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(format!(
                "the text has {} bytes; it has at most {TEXT_BYTES_MAX}",
                text.len()
            ));
        }
        let header = |name, value: &str| {
            HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned())
        };
        let to = to.to_ascii().parse().map_err(|_| MailAddressError.to_string())?;
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(subject)
            .date(UNIX_EPOCH + Duration::from_millis(self.clock.now_ms()))
            .message_id(Some(format!("<{id}@{}>", self.from.email.domain())))
            .raw_header(header("X-Entity-Ref-ID", id))
            .raw_header(header("Auto-Submitted", "auto-generated")) // nobody's holiday answers it
            .header(ContentType::TEXT_PLAIN)
            .body(text.clone())
            .map_err(|error| without_addresses(&error.to_string()))
    }
}

#[cfg(test)]
mod tests;
