//! Wraps the keys of the stack: by KMS, or on one machine by a key in a file.

pub(crate) mod file;
pub(crate) mod kms;

use std::path::Path;

use ringfence_core::StoreError;
use serde_json::{Value, json};

use crate::crypto::{SecretKey, place};
use file::FileError;
use kms::Kms;

/// Wraps the keys of the stack.
#[derive(Debug)]
pub struct Wrap(By);

#[derive(Debug)]
enum By {
    /// A key of KMS, which never leaves it.
    Kms(Kms),
    /// A key that was read from a file.
    File(SecretKey),
}

#[derive(Debug, thiserror::Error)]
#[error(
    "{0} in the table of keys is missing or was changed, or another stack or file has wrapped it; restore the table from \
     a backup, or the file"
)]
struct WrongKey(String);

impl Wrap {
    /// Wraps by a key of KMS.
    #[must_use]
    pub fn kms(kms: Kms) -> Self {
        Self(By::Kms(kms))
    }

    /// Wraps by the key in this file, for a stack on one machine.
    ///
    /// # Errors
    /// The file can't be read, or has another length.
    pub fn file(path: &Path) -> Result<Self, FileError> {
        file::key(path).map(|key| Self(By::File(key)))
    }

    /// Wraps the key of this name, such as `branch#1`.
    pub(crate) async fn wrap(
        &self,
        stack: &str,
        name: &str,
        key: &SecretKey,
    ) -> Result<Vec<u8>, StoreError> {
        match &self.0 {
            By::Kms(kms) => kms.encrypt(context(stack, name), key.bytes()).await,
            By::File(own) => Ok(own.seal(&place(&[stack, name]), key.bytes())),
        }
    }

    /// Unwraps the key of this name.
    pub(crate) async fn unwrap(
        &self,
        stack: &str,
        name: &str,
        wrapped: &[u8],
    ) -> Result<SecretKey, StoreError> {
        let plain = match &self.0 {
            By::Kms(kms) => Some(kms.decrypt(context(stack, name), wrapped).await?),
            By::File(own) => own.open(&place(&[stack, name]), wrapped).ok(),
        };
        plain.and_then(|plain| SecretKey::of(&plain)).ok_or_else(|| wrong_key(name))
    }
}

/// A key can't be unwrapped.
pub(crate) fn wrong_key(p: &str) -> StoreError {
    StoreError::Failed { operation: "unwrapping a key", source: WrongKey(p.to_owned()).into() }
}

/// The encryption context, which KMS writes into its trail: the stack, and the key's purpose.
fn context(stack: &str, name: &str) -> Value {
    let purpose = name.split('#').next().unwrap_or_default();
    json!({ "stack": stack, "purpose": purpose })
}
