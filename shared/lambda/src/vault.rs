//! The vault of a function: its variables, and how it is opened.

use std::path::Path;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_types::SdkConfig;
use ringfence_aws::{CA_BUNDLE, Clock, MeteredVault, Trust};
use ringfence_log::BoxError;
use ringfence_subjects::{KeyTable, KeyVault, Kms, Wrap};

use crate::{VariableNames, Variables};

/// The variable with the key of a vault.
const KEY: &str = "PERSONAL_KEY";
/// Before the path of a key's file, for a stack on one machine.
const FILE: &str = "file:";

/// The names of a vault.
#[derive(Clone, Debug)]
pub struct VaultNames {
    /// The stack.
    pub stack: String,
    /// The table of keys.
    pub table: String,
    /// The ARN of the KMS key that wraps the keys of the stack, or `file:` and a path.
    pub key: String,
    /// The file of further certificates; empty for none.
    pub bundle: String,
}

impl Variables {
    /// The names of a vault, if the function needs one.
    pub fn vault(&mut self, is_needed: bool) -> Option<VaultNames> {
        is_needed.then(|| VaultNames {
            stack: self.required("STACK_NAME"),
            table: self.required("KEY_TABLE"),
            key: self.required(KEY),
            bundle: self.optional(CA_BUNDLE, String::new()),
        })
    }
}

impl VariableNames {
    /// Whether the function needs a vault.
    #[must_use]
    pub fn have_vault(&self) -> bool {
        self.required.contains(KEY)
    }
}

/// The vault of these names, if there are any. It sends no request yet.
///
/// # Errors
/// The key's file can't be read, or the SDK's configuration lacks something for KMS.
pub async fn vault(
    names: Option<VaultNames>,
    client: &Client,
    clock: &Clock,
) -> Result<Option<Arc<dyn MeteredVault>>, BoxError> {
    match names {
        None => Ok(None),
        Some(names) => {
            let bundle = Some(names.bundle.clone()).filter(|path| !path.is_empty());
            let trust = Trust::of_amazon().or_bundle(bundle)?;
            let vault = names.open(&ringfence_aws::sdk_config()?, &trust, client, clock).await?;
            Ok(Some(Arc::new(vault)))
        }
    }
}

impl VaultNames {
    /// The vault of these names, with this configuration for KMS.
    ///
    /// # Errors
    /// As of [`vault`].
    pub async fn open(
        self,
        config: &SdkConfig,
        trust: &Trust,
        client: &Client,
        clock: &Clock,
    ) -> Result<KeyVault, BoxError> {
        let wrap = match self.key.strip_prefix(FILE) {
            Some(path) => Wrap::file(Path::new(path))?,
            None => Wrap::kms(Kms::of(config, trust, self.key).await?),
        };
        let table = KeyTable::new(client.clone(), self.table, clock.clone());
        Ok(KeyVault::new(self.stack, table, wrap, clock.clone()))
    }
}
