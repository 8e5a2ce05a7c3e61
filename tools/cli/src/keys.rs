//! Flags that say where the keys of personal data are.

use anyhow::{Result, anyhow};
use clap::Args;
use ringfence_lambda::VaultNames;
use ringfence_log::StackLogs;

use crate::machine::{sdk_config, trust};
use crate::stack::name;

/// The keys of personal data. Without them, values stay sealed.
#[derive(Args, Clone)]
pub struct KeyFlags {
    /// The table of the keys of personal data, for slices that read or write such data.
    #[arg(long, env = "KEY_TABLE", value_parser = name, requires = "personal_key")]
    key_table: Option<String>,
    /// The ARN of the KMS key that wraps them, or `file:` and a path.
    #[arg(long, env = "PERSONAL_KEY", value_parser = name, requires = "stack_name")]
    personal_key: Option<String>,
    /// The name of the stack, to which personal values are bound.
    #[arg(long, env = "STACK_NAME", value_parser = name)]
    stack_name: Option<String>,
}

impl KeyFlags {
    /// These logs with a vault for personal data, if the keys are named.
    ///
    /// # Errors
    /// The key's file can't be read, or the configuration lacks something for KMS.
    pub async fn open(&self, logs: StackLogs) -> Result<StackLogs> {
        let Self { key_table, personal_key, stack_name } = self.clone();
        let named = key_table.zip(personal_key).zip(stack_name);
        let Some(((table, key), stack)) = named else { return Ok(logs) };
        let names = VaultNames { stack, table, key, bundle: String::new() };
        let vault = names.open(&sdk_config().await?, &trust()?, &logs.client, &logs.clock).await;
        Ok(StackLogs { vault: Some(vault.map_err(|error| anyhow!(error))?), ..logs })
    }
}
