//! Personal data of documents: sealed before a write, open in the state.

use ringfence_core::personal::{Form, has};
use ringfence_core::{SequencedEvent, Vault, VaultError};

use crate::codec::Payload;

/// Whether a payload has an open personal value.
pub(crate) fn is_open(payloads: &[Payload]) -> bool {
    let mut data = payloads.iter().filter_map(|payload| payload.data.as_ref());
    data.any(|data| has(data, Form::Marked))
}

/// The vault of a category.
pub(crate) struct OfCategory<'v> {
    pub(crate) category: &'static str,
    pub(crate) vault: Option<&'v dyn Vault>,
}

impl OfCategory<'_> {
    fn vault(&self) -> Result<&dyn Vault, VaultError> {
        self.vault.ok_or_else(|| VaultError::Missing(self.category.to_owned()))
    }

    /// Seals the personal values of new events and unfolds.
    pub(crate) async fn seal(
        &self,
        events: &mut [Payload],
        unfolds: &mut [Payload],
    ) -> Result<(), VaultError> {
        if !is_open(events) && !is_open(unfolds) {
            return Ok(());
        }
        let payloads = events.iter_mut().chain(unfolds);
        self.vault()?.seal(payloads.filter_map(|payload| payload.data.as_mut()).collect()).await
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
