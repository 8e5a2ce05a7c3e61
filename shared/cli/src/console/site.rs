//! What the pages read from.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use aws_sdk_dynamodb::Client;
use clap::builder::Resettable;
use clap::{Args, Command, FromArgMatches};
use ringfence_feed::Index;
use ringfence_stack::Stack;

use crate::api;
use crate::commands::CommandLines;
use crate::tables::{Dynamo, IndexTable, LogTables, StackLogs};

/// Where the stack is.
#[derive(Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) index: IndexTable,
    #[command(flatten)]
    pub(crate) tables: LogTables,
    #[command(flatten)]
    pub(crate) commands: CommandLines,
    #[command(flatten)]
    pub(crate) dynamo: Dynamo,
    /// The URL of the HTTP API, to which commands are sent.
    #[arg(long, env = "API_URL", value_name = "URL", value_parser = api::url)]
    api: Option<String>,
    /// The folder with the samples of the functions, with which forms are filled.
    #[arg(long, value_name = "FOLDER", default_value = "events")]
    samples: PathBuf,
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
    /// Its logs.
    pub(crate) logs: StackLogs,
    /// Where the lines are that its functions write for each command.
    pub(crate) commands: CommandLines,
    /// The folder with the samples of its functions.
    pub(crate) samples: PathBuf,
    api: Option<String>,
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
        Self {
            stack,
            index_table: flags.index.index_table.clone(),
            logs: StackLogs { client: client.clone(), tables: flags.tables.clone() },
            commands: flags.commands.clone(),
            samples: flags.samples.clone(),
            api: flags.api.clone(),
            client,
            may_write,
            has_trouble: false,
        }
    }

    /// The URL of the HTTP API.
    pub(crate) fn api(&self) -> Result<&str> {
        let unnamed = "commands are sent to the HTTP API: name it with --api or --stack";
        self.api.as_deref().context(unnamed)
    }

    /// The index, with a meter of its own: each page says what it cost.
    pub(crate) fn index(&self) -> Index {
        Index::new(self.client.clone(), &self.index_table)
    }
}
