//! `ringfence subjects rotate`.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use ringfence_aws::Clock;
use ringfence_core::rfc3339;
use ringfence_subjects::{Purpose, Rotation};
use serde_json::json;

use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::tables::{KeyFlags, LogTables};

#[derive(Args)]
#[command(after_help = "\
A new branch key wraps the keys of people that are made from then on. A new blind key makes the tags of events forty
minutes later, when every function asks for them. Decisions ask for the tags under every blind key, so each one makes
reads and appends larger for ever. If a run was broken off, run it again: within forty minutes it makes no second key.

Examples:
  ringfence subjects rotate branch
  ringfence subjects rotate blind --stack ringfence-prod")]
pub(crate) struct Arguments {
    /// The keys.
    of: Keys,
    #[command(flatten)]
    tables: LogTables,
    #[command(flatten)]
    keys: KeyFlags,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Keys {
    /// Branch keys, which wrap the keys of people.
    Branch,
    /// Blind keys, which make tags of personal values.
    Blind,
}

pub(crate) async fn rotate(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { of, tables, keys, output } = arguments;
    let purpose = match of {
        Keys::Branch => Purpose::Branch,
        Keys::Blind => Purpose::Blind,
    };
    let logs = tables.logs(dynamo_client().await?, Clock::system());
    let rotation = keys.vault(&logs).await?.rotate(purpose).await?;
    output.show(&Rotated(rotation));
    Ok(ExitCode::SUCCESS)
}

/// The newest key; `None` if there is none yet.
struct Rotated(Option<Rotation>);

impl Display for Rotated {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(Rotation { number, used_from_ms, is_new }) = self.0 else {
            return write_line!(f, "there is no key yet: the first command makes one");
        };
        let from = rfc3339(used_from_ms);
        match is_new {
            true => write_line!(f, "key {number} is made, and used from {from}"),
            false => write_line!(
                f,
                "no key is made: key {number}, used from {from}, is less than forty minutes old"
            ),
        }
    }
}

serialize_as!(Rotated, |Rotated(rotation)| match rotation {
    None => json!(null),
    Some(Rotation { number, used_from_ms, is_new }) => {
        json!({ "number": number, "usedFrom": rfc3339(*used_from_ms), "isNew": is_new })
    }
});
