//! The part of `template.yaml` that follows from the list of the stack. It is written between marks, a pair in each
//! section. Everything outside of the marks is the team's. The texts are in `files/`. A line there that begins with a
//! word and a bar is written only if the stack has the thing that the word names.

mod adopt;
mod alarms;
mod conditions;
mod edits;
mod effects;
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
mod vault;
mod way_out;
mod write;

pub use adopt::{Adopted, adopted, has_marks};
pub use edits::edits;
pub use effects::effect_words;
pub use error::WriteError;
pub use grants::{Grant, Grants};
pub use source::{StackPlace, table_of};
pub use variables::{Statement, statements_of};
pub use write::written;
