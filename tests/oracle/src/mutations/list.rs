//! The list of the mutations.
//!
//! ```text
//! in shared/feed/src/index_events.rs
//! by feed.lib, feed deliveries
//!
//! No time is left: the letter is dropped as done
//! - if «left < NEEDED» {
//! + false
//! ```
//!
//! `by` names the tests that are nearest, in the order in which they run: the target with the name of an integration
//! test, or the unit tests of a folder of `shared`, or of another crate, with `.lib` after its name, and names that the
//! tests must have a part of. `--skip` before a name leaves out the tests that have it: those that take long come last,
//! in a run of their own. `by` holds for the file, or for one mutation if it comes last in it. What is between « and »
//! is replaced; without these marks, all is. A space stands for any white space, and the text occurs once in its file.

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use super::place::Text;

/// One mistake.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// The switch that turns it on. It stays the same as long as the mutation does, so that a change of the list makes
    /// cargo build little.
    pub switch: u64,
    /// What went wrong, in words.
    pub title: String,
    /// Below the root of the repository.
    pub file: PathBuf,
    pub line: usize,
    pub text: Text,
    pub replacement: String,
    pub tests: Vec<Run>,
}

/// Tests of one program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// `feed`, or `feed.lib`.
    pub target: String,
    /// Parts of the names of tests; without any, all tests run.
    pub names: Vec<String>,
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} {}", self.file.display(), self.line, self.title)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target)?;
        self.names.iter().try_for_each(|name| write!(f, " {name}"))
    }
}

/// Reads the whole list.
///
/// # Errors
/// A list can't be read, or every mutation whose text is not once in its file.
pub fn read(root: &Path) -> Result<Vec<Mutation>, String> {
    let (mut all, mut troubles) = (Vec::new(), Vec::new());
    let folder = root.join("tests/oracle/mutations");
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut lists: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    lists.sort();
    for list in lists {
        let trouble = |error: String| format!("{}: {error}", list.display());
        let text = fs::read_to_string(&list).map_err(|error| trouble(error.to_string()))?;
        parse(&text, &mut all).map_err(trouble)?;
    }
    for mutation in &mut all {
        let source = fs::read_to_string(root.join(&mutation.file)).unwrap_or_default();
        match mutation.text.find(&source) {
            Ok(place) => mutation.line = source[..place.start].matches('\n').count() + 1,
            Err(error) => troubles.push(format!("{mutation}: {error}")),
        }
    }
    if troubles.is_empty() { Ok(all) } else { Err(troubles.join("\n")) }
}

fn parse(text: &str, all: &mut Vec<Mutation>) -> Result<(), String> {
    let (mut file, mut nearest) = (PathBuf::new(), Vec::new());
    for block in text.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let mut lines = block.lines().peekable();
        if let Some(path) = block.strip_prefix("in ") {
            file = path.lines().next().unwrap_or_default().into();
            let by = lines.nth(1).and_then(|line| line.strip_prefix("by "));
            nearest = runs(by.ok_or_else(|| format!("no line `by` in\n{block}"))?);
            continue;
        }
        let title = lines.next().unwrap_or_default().to_owned();
        let mut text = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("- ")) {
            text.push(&line[2..]);
        }
        let mut replacement = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('+')) {
            replacement.push(line[1..].trim());
        }
        let tests = match lines.next() {
            None => nearest.clone(),
            Some(line) => {
                runs(line.strip_prefix("by ").ok_or_else(|| format!("{line:?} in\n{block}"))?)
            }
        };
        if text.is_empty() || replacement.is_empty() || lines.next().is_some() {
            return Err(format!("not a title, `-`, `+`, and perhaps `by`:\n{block}"));
        }
        let text = Text::of(&text.join("\n")).map_err(|error| format!("{error}:\n{block}"))?;
        let replacement = replacement.join("\n");
        let mut hasher = DefaultHasher::new();
        (&title, &file).hash(&mut hasher);
        let switch = hasher.finish();
        all.push(Mutation { switch, title, file: file.clone(), line: 0, text, replacement, tests });
    }
    Ok(())
}

fn runs(by: &str) -> Vec<Run> {
    let run = |run: &str| {
        let mut words = run.split_whitespace().map(str::to_owned);
        Run { target: words.next().unwrap_or_default(), names: words.collect() }
    };
    by.split(',').map(run).collect()
}
