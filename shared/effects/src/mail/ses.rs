//! Mail through SES: the operation SendEmail of its API v2, with the whole mail.

use std::error::Error;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lettre::message::Message;
use ringfence_aws::{AwsService, Trust, sdk_config};
use ringfence_reactors::Failed;
use serde_json::{Value, json};

use crate::cause::without_addresses;

/// Refusals of the mail itself. All others are about the account, its limits or its permissions, which can be changed.
const FOR_GOOD: [&str; 2] = ["MessageRejected", "BadRequestException"];

pub(super) struct Ses(AwsService);

impl Ses {
    pub(super) async fn open(trust: &Trust) -> Result<Self, Box<dyn Error + Send + Sync>> {
        AwsService::of(&sdk_config()?, trust, ["ses", "email", "SESv2"]).await.map(Self)
    }

    #[cfg(test)]
    pub(super) fn of(service: AwsService) -> Self {
        Self(service)
    }

    /// SES takes no key under which a mail is sent once. So a mail without an answer may be sent twice.
    pub(super) async fn send(&self, message: &Message, id: &str) -> Result<(), Failed> {
        let to: Vec<_> = message.envelope().to().iter().map(ToString::to_string).collect();
        let body = json!({
            "Content": { "Raw": { "Data": STANDARD.encode(message.formatted()) } },
            "Destination": { "ToAddresses": to },
            "EmailTags": [{ "Name": "delivery", "Value": id }],
        });
        let headers = [("content-type", "application/json")];
        let sent = self.0.post("/v2/email/outbound-emails", &headers, &body.to_string()).await;
        let reply = sent.map_err(|error| match error.was_sent() {
            true => Failed::unknown(&error),
            false => Failed::for_now(&error),
        })?;
        if reply.status == 200 {
            return Ok(());
        }
        let code = reply.code();
        let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let said = body["message"].as_str().or(body["Message"].as_str()).unwrap_or_default();
        let cause = without_addresses(&format!("SES: {} {code}: {said}", reply.status));
        match FOR_GOOD.contains(&&*code) {
            true => Err(Failed::ForGood(cause)),
            false => Err(Failed::ForNow(cause)),
        }
    }
}
