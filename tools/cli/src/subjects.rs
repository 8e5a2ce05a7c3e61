//! `ringfence subjects`: the people whose personal data a stack has.

mod forget;
mod list;
mod rotate;
mod show;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::Lists;

/// The commands about people.
#[derive(Subcommand)]
pub(crate) enum Subjects {
    /// Forgets a person: destroys the key of the personal data, and shows that they can't be read. Status 0: shown, 1:
    /// not shown yet, and a line says why, 2: error.
    Forget(forget::Arguments),
    /// Lets a forgotten person have a new key, for new personal data. The old ones stay forgotten.
    Allow(forget::Allow),
    /// Prints the events that have personal data of a person, opened, as lines of JSON.
    Show(show::Arguments),
    /// Lists the people who were forgotten.
    List(list::Arguments),
    /// Makes a new key of the stack.
    Rotate(rotate::Arguments),
    /// Compares the events about forgotten people with the table of keys, and looks for personal data in clear and for
    /// lost keys. Status 0: all in order, 1: not, 2: error.
    Verify(verify::Arguments),
}

pub(crate) async fn subjects(command: &Subjects, lists: &Lists) -> Result<ExitCode> {
    match command {
        Subjects::Forget(arguments) => forget::forget(arguments, lists).await,
        Subjects::Allow(arguments) => forget::allow(arguments).await,
        Subjects::Show(arguments) => show::show(arguments, lists).await,
        Subjects::List(arguments) => list::list(arguments).await,
        Subjects::Rotate(arguments) => rotate::rotate(arguments).await,
        Subjects::Verify(arguments) => verify::verify(arguments, lists).await,
    }
}
