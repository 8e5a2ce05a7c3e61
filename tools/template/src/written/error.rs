//! The reasons why a template is not written.

/// A template can't be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The text is not a template.
    #[error("template.yaml is not YAML")]
    Yaml(#[from] serde_yaml_ng::Error),
    /// It has a value that JSON can't hold.
    #[error("template.yaml has a value that JSON can't hold")]
    Json(#[from] serde_json::Error),
    /// Its lines have two kinds of ends.
    #[error(
        "template.yaml has lines that end with CR LF and lines that end with LF: save it with one of them"
    )]
    LineEnds,
    /// The lines of a section do not show where its entries begin.
    #[error(
        "template.yaml: each entry of {0} has to begin on a line of its own, after two spaces: write it so, and run the command again"
    )]
    Form(String),
    /// The folder is another stack's.
    #[error(
        "this program is of the stack {stack}, and {folder} has another one: run the program of that stack, for example by `cargo run --bin <program> -- template`"
    )]
    Other {
        /// The stack of the program.
        stack: &'static str,
        /// The folder.
        folder: String,
    },
    /// Two things would have the same name.
    #[error("{0}: choose another name")]
    Name(String),
    /// A setting can't be applied.
    #[error("template.yaml: {0}")]
    Settings(String),
    /// The text to write is not a valid template.
    #[error(
        "template.yaml would have something twice ({0}). If it has no marks, or changed ones, take it over by `cargo ringfence template --adopt`; else delete yours below the marks if an older release needed it there, or rename it"
    )]
    Marks(String),
}
