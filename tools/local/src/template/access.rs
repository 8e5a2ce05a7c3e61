//! Permissions: those that a request needs, those that a role lacks, and those that nothing needs.

use std::fmt::{self, Display, Formatter};

/// One permission that a request needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The action, such as `dynamodb:Query`.
    pub action: String,
    /// The table's logical id, or with the index: `EventTable/index/tag_customerId`.
    pub resource: String,
    /// The template's expression for the table's ARN: `EventTable.Arn`, or a parameter of Systems Manager that has it.
    pub arn: String,
    /// The partition key of the item or items; `None` for a scan or a batch.
    pub key: Option<String>,
    /// The transaction that the action is a part of, such as `TransactWriteItems`.
    pub enclosing: Option<String>,
}

impl Permission {
    /// The resource in the template's notation.
    #[must_use]
    pub fn yaml(&self) -> String {
        match self.resource.split_once('/') {
            None => format!("!GetAtt {}", self.arn),
            Some((_, index)) => format!("!Sub \"${{{}}}/{index}\"", self.arn),
        }
    }
}

impl Display for Permission {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.action, self.resource)?;
        if let Some(key) = &self.key {
            write!(f, ", key {key}")?;
        }
        self.enclosing.as_ref().map_or(Ok(()), |operation| write!(f, ", within {operation}"))
    }
}

/// A permission that a role lacks.
#[derive(Debug, thiserror::Error)]
pub struct LackingPermission {
    /// The role's logical id.
    pub role: String,
    /// The permission.
    pub access: Box<Permission>,
    /// The change that would add it.
    pub fix: Fix,
}

/// How a role can get a permission that it lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// The conditions of the statement that gives it do not hold.
    Conditions {
        /// The statement's name.
        sid: String,
    },
    /// Add the resource to a statement.
    Resource {
        /// The statement's name.
        sid: String,
    },
    /// Add the action to a statement.
    Action {
        /// The statement's name.
        sid: String,
    },
    /// Add a statement.
    Statement,
}

impl Display for LackingPermission {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { role, access, fix } = self;
        let (action, yaml) = (&access.action, access.yaml());
        write!(f, "{role} does not allow {access}: ")?;
        match fix {
            Fix::Conditions { sid } => {
                write!(f, "the conditions of its statement {sid} do not hold")
            }
            Fix::Resource { sid } => {
                write!(f, "add `- {yaml}` to the resources of its statement {sid}")
            }
            Fix::Action { sid } => {
                write!(f, "add `{action}` to the actions of its statement {sid}")
            }
            Fix::Statement => {
                write!(f, "add a statement with `Action: {action}` and `Resource: {yaml}`")
            }
        }
    }
}

/// A permission that a role gives although nothing needs it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Excess {
    /// The role's logical id.
    pub role: String,
    /// The name of the statement that gives it.
    pub sid: String,
    /// The permission.
    pub part: Part,
}

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// An action on a resource.
    Access {
        /// The action.
        action: String,
        /// The resource, as in [`Permission::resource`].
        resource: String,
        /// The table's ARN, as in [`Permission::arn`].
        arn: String,
        /// Whether it is given outside of transactions.
        alone: bool,
    },
    /// A pattern of partition keys.
    LeadingKey(String),
}

impl Display for Excess {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { role, sid, part } = self;
        write!(f, "{role}: its statement {sid} allows ")?;
        match part {
            Part::Access { action, resource, alone, .. } => {
                let alone = if *alone { " outside of transactions" } else { "" };
                write!(f, "{action} on {resource}{alone}")?;
            }
            Part::LeadingKey(key) => write!(f, "the leading key {key}")?,
        }
        write!(f, ", which nothing needs")
    }
}
