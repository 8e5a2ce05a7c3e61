//! Checks that each event of a context and each command of a slice names one document.

use ringfence_core::{
    Catalog, CatalogError, Context, Name, Reads, Slice, SliceError, TagSchema, check_writes,
};

use crate::{Document, Documents, StreamName, StreamNameError};

/// The reason that a context or a slice can't be on the document log.
#[derive(Debug, thiserror::Error)]
pub enum CategoryError {
    /// The catalog contradicts itself.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The context's name can't name a category.
    #[error(transparent)]
    Name(#[from] StreamNameError),
    /// An event or a command has another tag besides its document's tag.
    #[error(
        "{of} has the tag {key}, but on the document log a decision reads one document and nothing else: mark the \
         field #[tag(skip)]"
    )]
    Tag {
        /// The event type or the slice.
        of: Name,
        /// The tag key.
        key: Name,
    },
    /// An event or a command does not say which document it is about.
    #[error("{of} does not name its document: mark the field that names it #[tag(partition)]")]
    NoPartition {
        /// The event type or the slice.
        of: Name,
    },
    /// An event or a command names several documents.
    #[error(
        "{of} names its document by several tags, and on the document log a decision reads and writes one document: \
         mark one field #[tag(partition)], and the others #[tag(skip)]"
    )]
    Several {
        /// The event type or the slice.
        of: Name,
    },
    /// Two events, or an event and a command, name their document by different keys.
    #[error(
        "{of} names its document by the tag {key}, and other events of its context by {other}: use one key"
    )]
    Key {
        /// The event type or the slice.
        of: Name,
        /// Its key.
        key: Name,
        /// The key of others.
        other: Name,
    },
    /// The slice writes a type that is retired or not in the catalog.
    #[error(transparent)]
    Writes(#[from] SliceError),
    /// The state reads a type that is not in the catalog.
    #[error(
        "the documents of {of} are folded from {event_type}, which its catalog does not declare: add \
         {event_type}::SCHEMA to it"
    )]
    Undeclared {
        /// The context.
        of: Name,
        /// The event type.
        event_type: Name,
    },
}

/// Checks, when a function starts, that each command of the slice and each event of its context names one document.
///
/// # Errors
/// One of them names no document, or several.
pub(crate) fn check<S, D>() -> Result<(), CategoryError>
where
    S: Slice<State = D, Context: Context<Log = Documents<D>>>,
    D: Document,
{
    let (catalog, key) = declared::<S::Context, D>()?;
    check_writes::<S>(&catalog)?;
    for shape in S::SHAPES {
        check_key(S::NAME.into(), shape, key.as_ref())?;
    }
    Ok(())
}

/// The catalog of a context, and the key of the tag that names its documents, if it has any event.
pub(crate) fn declared<C, D>() -> Result<(Catalog, Option<Name>), CategoryError>
where
    C: Context<Log = Documents<D>>,
    D: Document,
{
    StreamName::new(C::NAME, "id")?;
    let (catalog, mut key) = (C::catalog()?, None);
    for schema in catalog.schemas() {
        key = Some(check_key(schema.name.clone(), &schema.tags, key.as_ref())?);
    }
    match D::Reads::TYPES.iter().find(|read| catalog.schema(read).is_none()) {
        None => Ok((catalog, key)),
        Some(read) => {
            let (of, event_type) = (C::NAME.into(), Name::Borrowed(read));
            Err(CategoryError::Undeclared { of, event_type })
        }
    }
}

/// The key of the partition tag. It must be the only tag, and have the key of the other events.
fn check_key(of: Name, tags: &[TagSchema], other: Option<&Name>) -> Result<Name, CategoryError> {
    if let Some(tag) = tags.iter().find(|tag| !tag.partition) {
        return Err(CategoryError::Tag { of, key: tag.key.clone() });
    }
    match (tags, other) {
        ([], _) => Err(CategoryError::NoPartition { of }),
        ([tag], Some(other)) if tag.key != *other => {
            Err(CategoryError::Key { of, key: tag.key.clone(), other: other.clone() })
        }
        ([tag], _) => Ok(tag.key.clone()),
        _ => Err(CategoryError::Several { of }),
    }
}
