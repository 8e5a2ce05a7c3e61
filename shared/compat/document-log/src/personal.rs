//! Personal data of documents: sealed before a write, open in the state.

use ringfence_core::personal::{Form, forget, has};
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

    /// Seals the personal values of new events or states. Those of a forgotten subject become forgotten, unless the
    /// command is refused because of it.
    pub(crate) async fn seal(
        &self,
        mut payloads: Vec<&mut Value>,
        refuses: impl Fn(&str) -> bool,
    ) -> Result<(), VaultError> {
        while payloads.iter().any(|payload| has(payload, Form::Marked)) {
            let marked = payloads.iter_mut().map(|payload| &mut **payload).collect();
            match self.vault()?.seal(marked).await {
                Err(VaultError::Forgotten(of)) if !refuses(&of) => {
                    payloads.iter_mut().for_each(|payload| forget(payload, &of));
                }
                sealed => return sealed,
            }
        }
        Ok(())
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

    /// The hash of a command that has personal data of this subject; none if the subject is forgotten, and the command
    /// is not refused because of it.
    pub(crate) async fn fingerprint(
        &self,
        subject: &str,
        text: &str,
        refuses: bool,
    ) -> Result<Option<String>, VaultError> {
        match self.vault()?.fingerprint(subject, text).await {
            Err(VaultError::Forgotten(_)) if !refuses => Ok(None),
            made => made.map(Some),
        }
    }
}
