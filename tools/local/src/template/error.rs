//! Errors of templates.

use std::path::PathBuf;

/// A template that cannot be read or is not understood.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The file cannot be read.
    #[error("cannot read the template {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file is not YAML.
    #[error("the template is not YAML")]
    Yaml(#[from] serde_yaml_ng::Error),
    /// The YAML has no form in JSON.
    #[error("the template has a value that JSON can't hold")]
    Json(#[from] serde_json::Error),
    /// The template has no such table.
    #[error("the template has no table {id}")]
    NoTable {
        /// The logical id asked for.
        id: String,
    },
    /// The template has no such parameter.
    #[error("the template has no parameter {name}; it has {}", known.join(", "))]
    NoParameter {
        /// The name asked for.
        name: String,
        /// The parameters of the template.
        known: Vec<String>,
    },
    /// A parameter is given without a value.
    #[error("{parameter}: write NAME=VALUE; the value may be empty")]
    NoValue {
        /// The text that was given.
        parameter: String,
    },
    /// The values of parameters contradict each other.
    #[error("{rule}: {says}")]
    Rule {
        /// The rule of the template that is broken.
        rule: String,
        /// Its description, which says what is allowed.
        says: String,
    },
    /// A property is missing or does not have the expected shape.
    #[error("{resource}: {property} is not as expected")]
    Property {
        /// The resource's logical id.
        resource: String,
        /// The property.
        property: String,
        /// The value that was found.
        #[source]
        source: serde_json::Error,
    },
    /// A property asks for something that this machine can't do.
    #[error("{resource}: {property}: not understood: {what}")]
    NotUnderstood {
        /// The resource's logical id.
        resource: String,
        /// The property.
        property: String,
        /// The value.
        what: String,
    },
}
