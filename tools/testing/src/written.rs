//! Checks that the template follows from the list of the stack. Under `UPDATE=1` the check writes it first.

use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use ringfence_core::kit::fail;
use ringfence_local::stack_root;
use ringfence_stack::Stack;
use ringfence_template::written::{Grants, StackPlace, WriteError, edits, has_marks, written};

use crate::template::check_none;

/// The hint of a check that could have written the missing part.
pub(crate) fn hint(text: &str) -> &'static str {
    match has_marks(text) {
        true => "`UPDATE=1 cargo test` writes this",
        false => {
            "template.yaml has no marks: `ringfence template --adopt` takes it over, and then `UPDATE=1 cargo test` writes this"
        }
    }
}

/// Whether checks write.
pub(crate) fn is_asked() -> bool {
    env::var_os("UPDATE").is_some()
}

/// Panics unless the template is current. Under `UPDATE=1` the template is written first, with these grants of roles,
/// unless it was edited between its marks. Then the message has each edit with the line that keeps it.
pub(crate) fn check_written(stack: &Stack, grants: Option<&Grants>) {
    // Checks run in parallel. Checks that only read find the text before or after the change.
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let (path, new) = (stack_root().join("template.yaml"), stack_root().join("template.yaml.new"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| fail(path.display(), error));
    let (fresh, mut lines) =
        differences(&text, stack, grants).unwrap_or_else(|error| fail("the template", error));
    if is_asked() && lines.is_empty() && fresh != text {
        let written = fs::write(&new, fresh).and_then(|()| fs::rename(&new, &path));
        written.unwrap_or_else(|error| fail(path.display(), error));
        eprintln!("wrote {}", path.display());
    } else if lines.is_empty() && fresh != text {
        lines.push(format!(
            "{} is not what follows from the list of the stack: {}",
            path.display(),
            hint(&text)
        ));
    }
    check_none(&lines);
}

/// Writes the template under `UPDATE=1`. A check calls it before it reads the template, because the check of the
/// template may run later.
pub(crate) fn write_if_asked(stack: &Stack) {
    if is_asked() {
        check_written(stack, None);
    }
}

/// The differences from the template that the list gives, and the edits that would be lost.
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
            "`ringfence template --adopt` keeps what can be kept, `--force` writes over the edits"
                .to_owned(),
        );
    }
    Ok((fresh, lines))
}
