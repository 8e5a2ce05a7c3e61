//! Personal data of documents: sealed before a write, open in the state.

use ringfence_core::personal::{Form, has};
use ringfence_core::{SequencedEvent, Vault, VaultError};
use serde_json::Value;

/// The vault of a category.
pub(crate) struct OfCategory<'v> {
    pub(crate) category: &'static str,
    pub(crate) vault: Option<&'v dyn Vault>,
}

impl OfCategory<'_> {
    fn vault(&self) -> Result<&dyn Vault, VaultError> {
        self.vault.ok_or_else(|| VaultError::Missing(self.category.to_owned()))
    }

    /// Seals the personal values of new events or states.
    pub(crate) async fn seal(&self, payloads: Vec<&mut Value>) -> Result<(), VaultError> {
        match payloads.iter().any(|payload| has(payload, Form::Marked)) {
            true => self.vault()?.seal(payloads).await,
            false => Ok(()),
        }
    }

    /// Opens the personal values of those events and snapshots that the state reads.
    pub(crate) async fn open(
        &self,
        found: &mut [SequencedEvent],
        is_read: impl Fn(&str) -> bool,
    ) -> Result<(), VaultError> {
        let Some(vault) = self.vault else { return Ok(()) };
        let read = found.iter_mut().filter(|event| is_read(&event.event_type));
        vault.open(read.map(|event| &mut event.data).collect()).await
    }

    /// The hash of a command that has personal data of this subject.
    pub(crate) async fn fingerprint(
        &self,
        subject: &str,
        text: &str,
    ) -> Result<String, VaultError> {
        self.vault()?.fingerprint(subject, text).await
    }
}
