//! `ringfence template`: the part of `template.yaml` that follows from the list of the stack.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use ringfence_template::written::{Adopted, StackPlace, adopted, edits, written};

use crate::{Lists, out};

#[derive(Args)]
#[command(after_help = "\
It writes between the marks of template.yaml. Resources, parameters and outputs outside of the marks are yours. You can
also change settings of the written resources, in a table by logical id:

  Metadata:
    Ringfence:
      PlaceOrder: { MemorySize: 512, Environment: { Variables: { GREETING: !Ref Greeting } } }
      LogRetentionDays: { Default: 90 }

A slice's permissions on the table of its log follow from its cases, which `UPDATE=1 cargo test` runs. This command does
not change them, and gives a new context all permissions that its log can need.

To take over the template of an older stack, which has no marks, commit it, run `ringfence template --adopt`, and read
`git diff`. --adopt also keeps edits between the marks. If something can't be kept, it says what and what to
do, and writes nothing; --adopt --force writes without that.

Examples:
  ringfence template
  ringfence template --adopt")]
pub(crate) struct Arguments {
    /// Keeps what was written by hand: moves unknown parts below the marks, and turns differences into settings.
    #[arg(long)]
    adopt: bool,
    /// Overwrites edits between the marks; with --adopt, over those that can't be kept.
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
                "`ringfence template --adopt` keeps edits that a setting can express, --force keeps no edit",
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
