//! Adds a context: its crate and its line in the stack.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use heck::{ToPascalCase, ToSnakeCase};

use crate::edit::{add_member, add_to_section, declaration};
use crate::ids::check_id;
use crate::names::{TYPES, check, check_crate, check_path, id_type, near, singular};
use crate::plan::{Plan, fill};
use crate::source::Source;

/// One of the three logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Log {
    /// Decisions may concern several things.
    Dcb,
    /// One stream of events an aggregate, for decisions that concern one thing.
    Aggregate,
    /// One document a stream, with its state beside its newest events.
    Document,
}

impl Log {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dcb => "dcb",
            Self::Aggregate => "aggregate",
            Self::Document => "document",
        }
    }
}

/// An existing context.
pub(crate) struct Found {
    /// Its crate's folder.
    pub(crate) folder: String,
    /// Its type.
    pub(crate) name: String,
    pub(crate) log: Log,
    /// The type of its documents.
    pub(crate) state: Option<String>,
}

/// The context of this name, if it exists.
pub(crate) fn find(plan: &Plan, context: &str) -> Result<Option<Found>> {
    let folder = format!("functions/{context}");
    let lib = format!("{folder}/src/lib.rs");
    if !plan.has(&lib) {
        return Ok(None);
    }
    let text = plan.read(&lib)?;
    let source = Source::new(&text).with_context(|| lib.clone())?;
    let declaration = declaration(source.items()).and_then(|declaration| {
        let tokens: Vec<_> = declaration.tokens.clone().into_iter().collect();
        let words: Vec<_> = tokens.iter().map(ToString::to_string).collect();
        let on = words.iter().position(|word| word == "on")?;
        let end = on + words[on..].iter().position(|word| word == ";")?;
        // `Name, "name" on Log;`
        Some((words.get(on.checked_sub(3)?)?.clone(), words[on + 1..end].concat()))
    });
    let Some((name, log)) = declaration else {
        bail!("{lib} has no `ringfence::context! {{ … on …; }}`, so {context} is not a context");
    };
    let state = log.strip_prefix("Documents<").and_then(|log| log.strip_suffix('>'));
    let log = match &*log {
        "Dcb" => Log::Dcb,
        "Aggregates" => Log::Aggregate,
        _ if state.is_some() => Log::Document,
        _ => bail!("{lib}: the log is {log}, not Dcb, Aggregates or Documents<…>"),
    };
    let state = state.map(str::to_owned);
    Ok(Some(Found { folder, name, log, state }))
}

/// The context of this name.
///
/// # Errors
/// It does not exist. The error names similar contexts, and says how to make this one.
pub(crate) fn existing(plan: &Plan, context: &str) -> Result<Found> {
    if let Some(found) = find(plan, context)? {
        return Ok(found);
    }
    let known = all(plan);
    let near = near(context, &known.iter().map(String::as_str).collect());
    let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
    let end = if near.is_empty() { "." } else { "" };
    bail!(
        "functions/ has no context {context}: its contexts are {known}{near}{end} Name one of them, or make this \
         one, for example by `cargo new-context {context} --log dcb`"
    )
}

/// The names of the existing contexts.
pub(crate) fn all(plan: &Plan) -> Vec<String> {
    let folders = fs::read_dir(plan.root().join("functions")).into_iter().flatten().flatten();
    let names = folders.map(|folder| folder.file_name().to_string_lossy().into_owned());
    let names: BTreeSet<_> = names.filter(|name| matches!(find(plan, name), Ok(Some(_)))).collect();
    names.into_iter().collect()
}

/// Plans a context.
pub(crate) fn add(plan: &mut Plan, context: &str, log: Log) -> Result<()> {
    check("the context", context)?;
    check_crate(context)?;
    check_path("the context", context)?;
    ensure!(
        log != Log::Document || !context.contains('-'),
        "the name of a context on the document log has no hyphen, because the name of a stream is <context>-<id>: choose \
         one word in place of {context}, or another log"
    );
    if log != Log::Dcb {
        check_id("the context", context, &format!("{}Role", context.to_pascal_case()))?;
    }
    if let Some(found) = find(plan, context)? {
        ensure!(
            found.log == log,
            "the context {context} is there, on the {} log: choose another name, or leave it there",
            found.log.name()
        );
    } else {
        let path = format!("functions/{context}");
        ensure!(!plan.has(&path), "{path} is there, but is not a context: choose another name");
        for (manifest, text) in plan.manifests() {
            let manifest = manifest.display();
            ensure!(
                !depends(&text, context),
                "{manifest} has a dependency {context} already: choose another name for the context"
            );
            let taken = format!("[package]\nname = \"{context}\"\n");
            ensure!(
                !text.contains(&taken),
                "{manifest} is of a crate {context} already: choose another name for the context"
            );
        }
        write_source(plan, context, log);
    }
    let manifest = fill(include_str!("../files/context.toml"), &[("name", context)]);
    plan.create(&format!("functions/{context}/Cargo.toml"), &manifest);
    match log {
        Log::Dcb => {}
        Log::Aggregate => depend(plan, context, "ringfence-aggregate-log")?,
        Log::Document => depend(plan, context, "ringfence-document-log")?,
    }
    let name = match find(plan, context)? {
        Some(found) => found.name,
        None => bail!("functions/{context} was not planned"),
    };
    let line = format!("{context}.path = \"../{context}\"");
    plan.edit("functions/stack/Cargo.toml", |text| {
        Ok(add_to_section(text, "dependencies", &line))
    })?;
    let member = format!("{}::{name}", context.to_snake_case());
    plan.edit("functions/stack/src/lib.rs", |text| add_member(text, "context", &member))
}

/// Whether a workspace has a dependency of this name. Other entries, such as `members`, do not count.
fn depends(manifest: &str, name: &str) -> bool {
    let after = manifest.split_once("[workspace.dependencies]\n").map_or("", |(_, after)| after);
    let entries = after.split("\n[").next().unwrap_or_default();
    entries.lines().any(|line| line.split(['.', ' ', '=']).next() == Some(name))
}

fn write_source(plan: &mut Plan, context: &str, log: Log) {
    let mut name = context.to_pascal_case();
    if TYPES.contains(&&*name) {
        name += "Context";
    }
    let events = format!("{name}Event");
    let snake = context.to_snake_case();
    let values = [("name", context), ("snake", &snake), ("Context", &name), ("Events", &events)];
    let lib = match log {
        Log::Dcb => include_str!("../files/dcb_context.rs"),
        Log::Aggregate => include_str!("../files/aggregate_context.rs"),
        Log::Document => include_str!("../files/document_context.rs"),
    };
    plan.create(&format!("functions/{context}/src/lib.rs"), &fill(lib, &values));
    let events = include_str!("../files/events.rs").to_owned() + &id_type(&singular(context));
    plan.create(&format!("functions/{context}/src/events.rs"), &events);
}

/// Adds a library of the workspace to the dependencies of a context's crate.
pub(crate) fn depend(plan: &mut Plan, context: &str, library: &str) -> Result<()> {
    let manifest = format!("functions/{context}/Cargo.toml");
    let line = format!("{library}.workspace = true");
    plan.edit(&manifest, |text| Ok(add_to_section(text, "dependencies", &line)))
}
