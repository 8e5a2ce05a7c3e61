//! Wrapping by a key of KMS: its operations Encrypt and Decrypt.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use aws_types::SdkConfig;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ringfence_aws::http::{HttpError, Reply};
use ringfence_aws::{AwsService, Retry, Trust};
use ringfence_core::StoreError;
use serde_json::{Value, json};
use zeroize::Zeroizing;

/// A request is sent at most this often.
const ATTEMPTS_MAX: u32 = 4;
/// No attempt begins later, because a command has only some seconds.
const BEGIN_WITHIN: Duration = Duration::from_secs(4);
/// At most this many characters of a code are repeated.
const CODE_CHARS_MAX: usize = 100;

/// A key of KMS.
pub struct Kms {
    service: AwsService,
    key_id: String,
}

/// KMS has not done what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum KmsError {
    /// It refuses.
    #[error("KMS refuses to use the key {key_id}: {code}; {advice}")]
    Refused {
        /// The ARN, id or alias of the key.
        key_id: String,
        /// KMS's code.
        code: String,
        /// The way out.
        advice: &'static str,
    },
    /// It does not answer.
    #[error("KMS does not answer")]
    NoAnswer(#[from] HttpError),
    /// It answers without what was asked for.
    #[error("the answer of KMS has no `{0}`")]
    Lacks(&'static str),
}

impl fmt::Debug for Kms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kms({})", self.key_id)
    }
}

impl Kms {
    /// The key with this ARN, id or alias.
    ///
    /// # Errors
    /// The configuration lacks a Region, credentials, or an endpoint that is not known here.
    pub async fn of(
        config: &SdkConfig,
        trust: &Trust,
        key_id: impl Into<String>,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let service = AwsService::of(config, trust, ["kms", "kms", "KMS"]).await?;
        Ok(Self { service, key_id: key_id.into() })
    }

    pub(super) async fn encrypt(
        &self,
        context: Value,
        plain: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let plain = Zeroizing::new(STANDARD.encode(plain));
        let body =
            json!({ "KeyId": self.key_id, "Plaintext": *plain, "EncryptionContext": context });
        self.ask(["KMS Encrypt", "TrentService.Encrypt"], body, "CiphertextBlob").await
    }

    pub(super) async fn decrypt(
        &self,
        context: Value,
        wrapped: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let wrapped = STANDARD.encode(wrapped);
        let body = json!({ "KeyId": self.key_id, "CiphertextBlob": wrapped, "EncryptionContext": context });
        let plain = self.ask(["KMS Decrypt", "TrentService.Decrypt"], body, "Plaintext").await;
        plain.map(Zeroizing::new)
    }

    /// Asks until there is an answer. Both operations may be repeated.
    async fn ask(
        &self,
        [operation, target]: [&'static str; 2],
        body: Value,
        field: &'static str,
    ) -> Result<Vec<u8>, StoreError> {
        let headers = [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", target)];
        let body = Zeroizing::new(body.to_string());
        let mut attempts = Retry::default().attempts_max(ATTEMPTS_MAX).within(BEGIN_WITHIN).start();
        loop {
            let (error, is_for_now) = match self.service.post("/", &headers, &body).await {
                Ok(reply) if reply.status == 200 => match bytes(reply, field) {
                    Some(bytes) => return Ok(bytes),
                    None => (KmsError::Lacks(field), false),
                },
                Ok(reply) => self.refusal(&reply),
                Err(error) => {
                    let is_for_now = !matches!(error, HttpError::Request(_) | HttpError::Sign(_));
                    (error.into(), is_for_now)
                }
            };
            if !is_for_now {
                return Err(StoreError::Failed { operation, source: error.into() });
            }
            if !attempts.again().await {
                let (attempts, source) = (attempts.made(), error.into());
                return Err(StoreError::Unavailable { operation, attempts, source });
            }
        }
    }

    /// The refusal, and whether the same request may succeed later.
    fn refusal(&self, reply: &Reply) -> (KmsError, bool) {
        let code: String = reply.code().chars().take(CODE_CHARS_MAX).collect();
        let (advice, is_for_now) = match &*code {
            "AccessDeniedException" => {
                ("allow `kms:Encrypt` and `kms:Decrypt` on the key to the function's role", false)
            }
            "DisabledException" => ("enable the key", false),
            "KMSInvalidStateException" => ("cancel the deletion of the key, and enable it", false),
            "NotFoundException" => ("set the ARN of a key in this Region", false),
            "InvalidCiphertextException" | "IncorrectKeyException" => (
                "another key or stack has wrapped it, or it was changed: restore the item from a backup of the table",
                false,
            ),
            "ThrottlingException" | "LimitExceededException" => {
                ("ask for a higher quota of KMS's requests", true)
            }
            _ => ("the documentation of KMS has the code", reply.status >= 500),
        };
        let code = format!("{} {code}", reply.status);
        (KmsError::Refused { key_id: self.key_id.clone(), code, advice }, is_for_now)
    }
}

fn bytes(reply: Reply, field: &str) -> Option<Vec<u8>> {
    let body = Zeroizing::new(reply.body);
    let body: Value = serde_json::from_slice(&body).ok()?;
    STANDARD.decode(body[field].as_str()?).ok()
}
