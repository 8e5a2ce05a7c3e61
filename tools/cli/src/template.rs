//! `ringfence template`: the part of `template.yaml` that follows from the list of the stack.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use ringfence_template::written::{Adopted, StackPlace, adopted, edits, written};

use crate::{Lists, out};

#[derive(Args)]
#[command(after_help = "\
It writes between the marks of template.yaml. Resources, parameters and outputs outside of the marks are yours. Settings of
what is written are yours too, in a table by logical id:

  Metadata:
    Ringfence:
      PlaceOrder: { MemorySize: 512, Environment: { Variables: { GREETING: !Ref Greeting } } }
      LogRetentionDays: { Default: 90 }

What a slice may do in the table of its log follows from its cases, which `UPDATE=1 cargo test` runs. This command leaves
it as it is, and lets a new context do all that its log can need.

A template without marks, of an older stack, is taken over in three steps: commit it, run `ringfence template --adopt`, and
read `git diff`. --adopt also keeps what was edited between the marks. If something can't be kept, it says what and what to
do, and writes nothing; --adopt --force writes without that.

Examples:
  ringfence template
  ringfence template --adopt")]
pub(crate) struct Arguments {
    /// Keeps what was written by hand: what is not known goes below the marks, and what differs becomes a setting.
    #[arg(long)]
    adopt: bool,
    /// Writes over edits between the marks; with --adopt, over those that can't be kept.
    #[arg(long)]
    force: bool,
}

pub(crate) fn template(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let root = ringfence_new::root()?;
    let path = root.join("template.yaml");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let (stack, place) = (&lists.stack, StackPlace::own(&root, &lists.stack)?);
    let fresh = if arguments.adopt {
        let Adopted { text, lost } = adopted(&text, stack, &place)?;
        if !lost.is_empty() {
            out::line("this would be lost:");
            lost.iter().for_each(|line| out::line(line));
        }
        if !lost.is_empty() && !arguments.force {
            out::line("nothing is written; `ringfence template --adopt --force` writes without it");
            return Ok(ExitCode::FAILURE);
        }
        text
    } else {
        let fresh = written(&text, stack, &place, None)?;
        let edited = edits(&text, &fresh)?;
        if !edited.is_empty() && !arguments.force {
            out::line("template.yaml was edited between its marks, so nothing is written:");
            edited.iter().for_each(|line| out::line(line));
            out::line(
                "`ringfence template --adopt` keeps what a setting can keep, --force none of it",
            );
            return Ok(ExitCode::FAILURE);
        }
        fresh
    };
    if fresh == text {
        out::line("template.yaml is current");
        return Ok(ExitCode::SUCCESS);
    }
    let new = path.with_extension("yaml.new");
    let written = fs::write(&new, &fresh).and_then(|()| fs::rename(&new, &path));
    written.with_context(|| format!("writing {}", path.display()))?;
    out::line("wrote template.yaml; `git diff` shows what has changed");
    Ok(ExitCode::SUCCESS)
}
