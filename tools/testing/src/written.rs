//! The stack with its template as it follows from the list. Under `UPDATE=1` the template is written first.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use ringfence_core::kit::fail;
use ringfence_local::stack_root;
use ringfence_local::template::{Model, Template};
use ringfence_stack::{Members, Stack};
use ringfence_template::written::{Grants, StackPlace, WriteError, edits, has_marks, written};
use serde_json::Value;

use crate::template::json_of;

/// The hint of a check that could have written the missing part.
pub(crate) fn hint(text: &str) -> &'static str {
    match has_marks(text) {
        true => "`UPDATE=1 cargo test` writes this",
        false => {
            "template.yaml has no marks: `cargo ringfence template --adopt` takes it over, and then `UPDATE=1 cargo test` writes this"
        }
    }
}

/// Whether checks write.
pub(crate) fn is_asked() -> bool {
    env::var_os("UPDATE").is_some()
}

/// A stack with the template that follows from its list, whether it is written yet or not. One check says if it is not;
/// all others already use it, so one run names all that a person has to do.
pub(crate) struct Current {
    pub(crate) stack: Stack,
    text: String,
}

impl Current {
    pub(crate) fn of<M: Members>() -> Self {
        let stack = Stack::of::<M>().unwrap_or_else(|error| fail("the stack", error));
        let (text, fresh, edits) = write_if_asked(&stack, None);
        // Edits between the marks stay until a person decides.
        let text = if edits.is_empty() { fresh } else { text };
        Self { stack, text }
    }

    /// The stack `M` with a new template, in which roles have these grants.
    #[cfg(test)]
    pub(crate) fn new<M: Members>(grants: Option<&Grants>) -> Self {
        let stack = Stack::of::<M>().expect("a stack");
        let place = StackPlace::of(std::path::Path::new("new"));
        let text = written("AWSTemplateFormatVersion: \"2010-09-09\"\n", &stack, &place, grants);
        Self { stack, text: text.expect("a template") }
    }

    /// The template.
    pub(crate) fn template(&self) -> Template {
        Template::parse(&self.text).unwrap_or_else(|error| fail("the template", error))
    }

    /// The template as this machine runs it.
    pub(crate) fn model(&self) -> Model {
        let model = self.template().whole().model("http://127.0.0.1:1");
        model.unwrap_or_else(|error| fail("the template", error))
    }

    /// The template as JSON.
    pub(crate) fn json(&self) -> Value {
        json_of(&self.text)
    }
}

fn path() -> PathBuf {
    stack_root().join("template.yaml")
}

/// The text of the template, the text that follows from the list, with these grants of roles, and the edits that would
/// be lost. Under `UPDATE=1` the new text is written, unless there are edits.
fn write_if_asked(stack: &Stack, grants: Option<&Grants>) -> (String, String, Vec<String>) {
    // Checks run in parallel, and a text without grants has those of the file.
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = path();
    let text = fs::read_to_string(&path).unwrap_or_else(|error| fail(path.display(), error));
    let (fresh, edits) =
        differences(&text, stack, grants).unwrap_or_else(|error| fail("the template", error));
    if is_asked() && edits.is_empty() && fresh != text {
        let new = path.with_extension("yaml.new");
        let written = fs::write(&new, &fresh).and_then(|()| fs::rename(&new, &path));
        written.unwrap_or_else(|error| fail(path.display(), error));
        eprintln!("wrote {}", path.display());
    }
    (text, fresh, edits)
}

/// Lines unless the template is current: each edit between the marks with the line that keeps it, or the command that
/// writes the template. Under `UPDATE=1` it is written, with these grants of roles.
pub(crate) fn differences_of_template(stack: &Stack, grants: Option<&Grants>) -> Vec<String> {
    let (text, fresh, mut lines) = write_if_asked(stack, grants);
    if lines.is_empty() && fresh != text && !is_asked() {
        lines.push(format!(
            "{} is not what follows from the list of the stack: {}",
            path().display(),
            hint(&text)
        ));
    }
    lines
}

/// The template that the list gives, and the edits that would be lost.
fn differences(
    text: &str,
    stack: &Stack,
    grants: Option<&Grants>,
) -> Result<(String, Vec<String>), WriteError> {
    let fresh = written(text, stack, &StackPlace::own(&stack_root(), stack)?, grants)?;
    let mut lines = edits(text, &fresh)?;
    if !lines.is_empty() {
        lines.insert(0, "template.yaml was edited between its marks:".to_owned());
        lines.push(
            "`cargo ringfence template --adopt` keeps what can be kept, `--force` writes over the edits"
                .to_owned(),
        );
    }
    Ok((fresh, lines))
}
