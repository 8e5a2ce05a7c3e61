//! Why a template is not written.

/// What can't be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The text is not a template.
    #[error("template.yaml is not YAML")]
    Yaml(#[from] serde_yaml_ng::Error),
    /// It has a value that JSON can't hold.
    #[error("template.yaml has a value that JSON can't hold")]
    Json(#[from] serde_json::Error),
    /// A setting is of nothing that is written.
    #[error("template.yaml: {0}")]
    Settings(String),
    /// What would be written is no template.
    #[error(
        "template.yaml would have something twice ({0}), because its marks are missing or changed: restore them, or take it over by `ringfence template --adopt`"
    )]
    Marks(serde_yaml_ng::Error),
    /// A person has changed what is between the marks.
    #[error("template.yaml has edits by hand between its marks, which would be lost:\n{}", .0.join("\n"))]
    Edited(Vec<String>),
}
