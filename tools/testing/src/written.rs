//! The template is what follows from the list of the stack. Under `UPDATE=1` a check writes it before it looks.

use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use ringfence_core::kit::fail;
use ringfence_local::stack_root;
use ringfence_stack::Stack;
use ringfence_template::written::{Grants, StackPlace, WriteError, edits, has_marks, written};

use crate::template::check_none;

/// What a check says if it could have written what it asks for.
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

/// Panics unless the template is current. Under `UPDATE=1` it is written first, with these grants of roles, unless it was
/// edited between its marks: such an edit is shown with the line that keeps it.
pub(crate) fn check_written(stack: &Stack, grants: Option<&Grants>) {
    // Checks run side by side, and those that only read find the text before or after.
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

/// Writes the template if that is asked for, before a check reads it that runs beside the one of the template.
pub(crate) fn write_if_asked(stack: &Stack) {
    if is_asked() {
        check_written(stack, None);
    }
}

/// What the template is to be, and the edits that would be lost.
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
