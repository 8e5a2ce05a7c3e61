//! `ringfence doctor`: which parts of a stack are behind this release of Ringfence.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use anyhow::{Context, Result};
use clap::Args;
use ringfence_new::Lacking;
use ringfence_schemas::{Lock, check};
use ringfence_template::map::{Map, stale_map_files};
use ringfence_template::written::{StackPlace, edits, has_marks, written};
use serde_json::{Value, json};

use crate::out::{Output, serialize_as, write_line};
use crate::{Lists, remark};

#[derive(Args)]
#[command(after_help = "\
Run it in the folder of the stack after an update of Ringfence. It compares template.yaml, schemas/, docs/api/, docs/map.*,
the manifests and the aliases in .cargo/config.toml with what this release writes, and looks at the tools that build
and deploy. It names each part that is behind, with the command that mends it, and changes nothing.

With the variable UPDATE it first adds to manifests and aliases what a new stack has. It changes no entry that is there.
`UPDATE=1 cargo test` writes the other parts.

Examples:
  ringfence doctor
  UPDATE=1 ringfence doctor")]
pub(crate) struct Arguments {
    #[command(flatten)]
    output: Output,
}

/// The parts that are behind.
#[derive(Default)]
struct Diagnosis {
    /// Each with the way out.
    behind: Vec<(String, String)>,
    /// Tools that this machine lacks, each with the command that installs it. Another machine may deploy the stack.
    missing: Vec<(String, String)>,
}

const BY_TEST: &str = "UPDATE=1 cargo test";

pub(crate) fn doctor(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let root = ringfence_new::root()?;
    let place = StackPlace::own(&root, &lists.stack)?;
    if env::var_os("UPDATE").is_some() {
        remark!("{}", Lacking::of(&root)?.write()?.trim_end());
    }
    let mut found = Diagnosis::default();
    found.workspace(&root)?;
    found.template(&root, lists, &place)?;
    found.locks(&root, lists);
    found.documents(&root, lists)?;
    for tool in &TOOLS {
        found.tool(tool);
    }
    let is_well = found.behind.is_empty();
    Ok(arguments.output.end(&found, is_well))
}

impl Diagnosis {
    fn add(&mut self, part: impl Into<String>, way_out: impl Into<String>) {
        self.behind.push((part.into(), way_out.into()));
    }

    fn workspace(&mut self, root: &Path) -> Result<()> {
        let lacking = Lacking::of(root)?;
        for part in lacking.parts() {
            self.add(format!("lacks {part}"), "UPDATE=1 cargo ringfence doctor");
        }
        for entry in lacking.other_versions()? {
            let version = env!("CARGO_PKG_VERSION");
            self.add(
                format!("{}: {entry}", lacking.manifest()),
                format!(
                    "write the version {version} there (in git the tag v{version}), or run the program of that \
                     version"
                ),
            );
        }
        Ok(())
    }

    fn template(&mut self, root: &Path, lists: &Lists, place: &StackPlace) -> Result<()> {
        let path = root.join("template.yaml");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let adopt = "cargo ringfence template --adopt";
        if !has_marks(&text) {
            self.add("template.yaml has no marks", adopt);
            return Ok(());
        }
        let compared = written(&text, &lists.stack, place, None)
            .and_then(|fresh| Ok((edits(&text, &fresh)?.is_empty(), fresh == text)));
        match compared {
            Err(error) => self.add(error.to_string(), BY_TEST),
            Ok((false, _)) => self.add("template.yaml was edited between its marks", adopt),
            Ok((_, false)) => {
                self.add("template.yaml is not what follows from the list of the stack", BY_TEST);
            }
            Ok(_) => {}
        }
        Ok(())
    }

    fn locks(&mut self, root: &Path, lists: &Lists) {
        for (context, now) in (lists.locks)() {
            let released = match Lock::read(root, context) {
                Ok(released) => released,
                Err(error) => {
                    self.add(format!("{error:#}"), "cargo test says how to resolve it");
                    continue;
                }
            };
            let compared = check(&lists.stack, &lists.readers, context, &released, &now);
            let path = Lock::path(context);
            if compared.findings.iter().any(|finding| !finding.is_written) {
                self.add(
                    format!("{path} has something that the code breaks"),
                    "cargo test says what to do",
                );
            } else if compared.grown != released {
                self.add(format!("{path} lacks what the code has"), BY_TEST);
            }
        }
    }

    fn documents(&mut self, root: &Path, lists: &Lists) -> Result<()> {
        // A lock that can't be read is named already.
        for (path, _) in lists.contract()?.stale_documents(root).unwrap_or_default() {
            self.add(format!("{path} differs from the stack"), BY_TEST);
        }
        for (path, _) in stale_map_files(&Map::of(&lists.stack), root) {
            self.add(format!("{path} differs from the stack"), BY_TEST);
        }
        Ok(())
    }

    fn tool(&mut self, Tool { command, oldest, install }: &Tool) {
        let mut program = Command::new(command[0]);
        let output = program.args(&command[1..]).stdin(Stdio::null()).output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else {
            self.missing.push((command[..command.len() - 1].join(" "), (*install).to_owned()));
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout);
        if numbers(&said) < numbers(oldest) {
            self.add(format!("{} is older than {oldest}", said.trim()), *install);
        }
    }
}

/// A tool on a person's machine.
struct Tool {
    /// Prints the version.
    command: &'static [&'static str],
    /// The oldest version that a stack can use.
    oldest: &'static str,
    install: &'static str,
}

const TOOLS: [Tool; 3] = [
    Tool {
        command: &["rustc", "--version"],
        oldest: env!("CARGO_PKG_RUST_VERSION"),
        install: "rustup update stable",
    },
    Tool {
        command: &["sam", "--version"],
        oldest: "1.165.0",
        install: "pip install aws-sam-cli==1.170.0",
    },
    Tool {
        command: &["cargo", "lambda", "--version"],
        oldest: "1.9.2",
        install: "pip install cargo-lambda==1.9.2",
    },
];

/// The numbers of the first version in a text, such as `SAM CLI, version 1.170.0`.
fn numbers(text: &str) -> Vec<u64> {
    let version =
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let parts = version.unwrap_or_default().split(|c: char| !c.is_ascii_digit());
    parts.map_while(|part| part.parse().ok()).collect()
}

impl Display for Diagnosis {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { behind, missing } = self;
        for (part, way_out) in behind {
            write_line!(f, "behind   {part}: {way_out}")?;
        }
        for (tool, install) in missing {
            write_line!(f, "missing  {tool}, for a deploy from this machine: {install}")?;
        }
        let (count, version) = (behind.len(), env!("CARGO_PKG_VERSION"));
        match count {
            0 => write_line!(f, "no part of the stack is behind Ringfence {version}"),
            1 => write_line!(f, "1 part is behind Ringfence {version}"),
            _ => write_line!(f, "{count} parts are behind Ringfence {version}"),
        }
    }
}

serialize_as!(Diagnosis, |Diagnosis { behind, missing }| {
    let list = |of: &[(String, String)]| {
        of.iter()
            .map(|(part, way_out)| json!({ "part": part, "wayOut": way_out }))
            .collect::<Value>()
    };
    json!({ "version": env!("CARGO_PKG_VERSION"), "behind": list(behind), "missing": list(missing) })
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_tool_is_found_and_the_page_names_the_same_versions() {
        for (said, oldest, is_older) in [
            ("SAM CLI, version 1.164.9\n", "1.165.0", true),
            ("SAM CLI, version 1.170.0\n", "1.165.0", false),
            ("cargo-lambda 1.10.0 (abc 2026-01-01Z)", "1.9.2", false),
            ("rustc 1.95.0 (f2d3ce0bd 2026-03-21)", "1.95", false),
            ("rustc 1.94.1", "1.95", true),
        ] {
            assert_eq!(numbers(said) < numbers(oldest), is_older, "{said}");
        }
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/deploy.md");
        let page = fs::read_to_string(page).expect("the page");
        let [_, sam, lambda] = &TOOLS;
        let line = format!(
            "{} {}    # SAM from {} on",
            sam.install,
            lambda.install.trim_start_matches("pip install "),
            sam.oldest
        );
        assert!(page.contains(&line), "docs/deploy.md: {line}");
    }
}
