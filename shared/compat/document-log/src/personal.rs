//! Personal data of documents: sealed before a write, open in the state.

use ringfence_core::personal::{Form, has};
use ringfence_core::{Reads, SequencedEvent, VaultError};

use crate::codec::Payload;
use crate::{Category, Document, DocumentError};

/// Whether a payload has an open personal value.
pub(crate) fn is_open(payloads: &[Payload]) -> bool {
    let mut data = payloads.iter().filter_map(|payload| payload.data.as_ref());
    data.any(|data| has(data, Form::Marked))
}

impl<D: Document, S> Category<D, S> {
    /// Seals the personal values of new events and unfolds.
    pub(crate) async fn seal(
        &self,
        events: &mut [Payload],
        unfolds: &mut [Payload],
    ) -> Result<(), DocumentError> {
        match &self.vault {
            None if is_open(events) || is_open(unfolds) => {
                Err(VaultError::Missing(self.name.to_owned()).into())
            }
            None => Ok(()),
            Some(vault) => {
                let payloads = events.iter_mut().chain(unfolds);
                let data = payloads.filter_map(|payload| payload.data.as_mut());
                Ok(vault.seal(data.collect()).await?)
            }
        }
    }

    /// Opens the personal values of snapshots, and of events of which the state reads them.
    pub(crate) async fn open(&self, found: &mut [SequencedEvent]) -> Result<(), DocumentError> {
        match &self.vault {
            None => Ok(()),
            Some(vault) => {
                let is_read = |event: &&mut SequencedEvent| {
                    D::Reads::PERSONAL.contains(&&*event.event_type)
                        || self.access.snapshot(&event.event_type).is_some()
                };
                let data = found.iter_mut().filter(is_read).map(|event| &mut event.data);
                Ok(vault.open(data.collect()).await?)
            }
        }
    }

    /// The hash of a command that has personal data of this subject.
    pub(crate) async fn fingerprint(
        &self,
        subject: &str,
        text: &str,
    ) -> Result<String, DocumentError> {
        match &self.vault {
            None => Err(VaultError::Missing(format!("a command about {subject}")).into()),
            Some(vault) => Ok(vault.fingerprint(subject, text).await?),
        }
    }
}
