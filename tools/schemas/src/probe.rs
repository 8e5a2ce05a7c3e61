//! The shape of a type, found out by what the type takes.
//!
//! `asked` notes what a type asks of a deserializer at a place of its JSON, and whether it takes a value there. Where a
//! type buffers what it reads, as serde's enums with a tag do, only errors say what is wanted: `why` reads them.
//! `find` makes a shape of both, and finds limits by trying.

mod asked;
mod find;
mod place;
mod why;

use serde::de::DeserializeOwned;

use crate::Shape;

pub(crate) use find::list_lengths;

impl Shape {
    /// What JSON a `T` takes.
    ///
    /// A limit is found where the type keeps it for letters, for the number 1 or another common one, or for equal
    /// elements of a list. Where a type takes whatever is there and decides later, as an untagged enum does, the shape is
    /// [`Shape::Any`]. The optional members of an enum with a tag are found if it is marked
    /// `#[serde(deny_unknown_fields)]`.
    #[must_use]
    pub fn of<T: DeserializeOwned>() -> Self {
        find::shape(&asked::Asking::<T>::whole())
    }
}

#[cfg(test)]
mod tests;
