//! The part of `template.yaml` that follows from the list of the stack. It is written between marks, a pair in each section,
//! and everything outside of them is a team's own. The texts are in `files/`; a line there that begins with a word and a
//! bar is written if the stack has what the word says.

mod adopt;
mod alarms;
mod conditions;
mod edits;
mod error;
mod flow;
mod functions;
mod grants;
mod line_ends;
mod lines;
mod policy;
mod settings;
mod source;
mod table;
mod variables;
mod way_out;
mod write;

pub use adopt::{Adopted, adopted, has_marks};
pub use edits::edits;
pub use error::WriteError;
pub use grants::{Grant, Grants};
pub use source::{StackPlace, table_of};
pub use variables::{Statement, statements_of};
pub use write::written;
