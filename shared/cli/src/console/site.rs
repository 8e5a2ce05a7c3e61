//! What the pages read from.

use std::collections::BTreeMap;

use anyhow::Result;
use aws_sdk_dynamodb::Client;
use clap::builder::Resettable;
use clap::{Args, Command, FromArgMatches};
use ringfence_feed::Index;
use ringfence_stack::Stack;

use crate::tables::{Dynamo, IndexTable};

/// Where the stack is.
#[derive(Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) index: IndexTable,
    #[command(flatten)]
    pub(crate) dynamo: Dynamo,
}

impl Flags {
    /// The flags whose variables have these values, whatever the environment says.
    pub(crate) fn of_variables(variables: &BTreeMap<String, String>) -> Result<Self> {
        let command = Self::augment_args(Command::new("console")).mut_args(|flag| {
            let value = flag.get_env().and_then(|name| variables.get(name.to_str()?));
            let flag = match value.cloned() {
                // A command is made once and lives as long as the program.
                Some(value) => flag.required(false).default_value(&*value.leak()),
                None => flag,
            };
            flag.env(Resettable::Reset)
        });
        Ok(Self::from_arg_matches(&command.try_get_matches_from(["console"])?)?)
    }
}

/// The stack that the pages show.
pub(crate) struct Site {
    /// What it lists.
    pub(crate) stack: &'static Stack,
    client: Client,
    index_table: String,
    /// Whether a page may change anything; if not, the guard refuses it, and no page offers it.
    pub(crate) may_write: bool,
    /// Whether there is a page `/trouble`.
    pub(crate) has_trouble: bool,
}

impl Site {
    pub(crate) fn new(
        stack: &'static Stack,
        flags: &Flags,
        client: Client,
        may_write: bool,
    ) -> Self {
        let index_table = flags.index.index_table.clone();
        Self { stack, client, index_table, may_write, has_trouble: false }
    }

    /// The index, with a meter of its own: each page says what it cost.
    pub(crate) fn index(&self) -> Index {
        Index::new(self.client.clone(), &self.index_table)
    }
}
