//! The promises of a stack to its callers and to consumers of its events.

use std::collections::BTreeMap;
use std::path::Path;

use ringfence_core::CatalogError;
use ringfence_stack::{MemberList, Members, Stack, Visitor};
use ringfence_views::View;
use serde_json::Value;

use crate::{Lock, LockError, Shape, compare, present};

/// The promises of a stack to callers and consumers. [`Contract::openapi`] and [`Contract::asyncapi`] write them down.
pub struct Contract {
    pub(crate) stack: Stack,
    /// The locks, by context.
    pub(crate) locks: BTreeMap<&'static str, Lock>,
    /// The schemas of the rows, by view.
    pub(crate) rows: BTreeMap<&'static str, Value>,
}

impl Contract {
    /// The contract of the code as it is. It has only the newest version of each type of events.
    ///
    /// # Errors
    /// Two contexts contradict each other.
    pub fn of<M: Members>() -> Result<Self, CatalogError> {
        let mut rows = Rows(BTreeMap::new());
        MemberList::walk::<M>(&mut rows);
        Ok(Self { stack: Stack::of::<M>()?, locks: present::<M>(), rows: rows.0 })
    }

    /// Whether the stack has no context.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stack.contexts.is_empty()
    }

    /// Adds all versions of events in the locks of the stack in this folder.
    ///
    /// # Errors
    /// A lock can't be read.
    pub fn with_locks(mut self, root: &Path) -> Result<Self, LockError> {
        for (context, present) in &mut self.locks {
            *present = compare(context, &Lock::read(root, context)?, present).grown;
        }
        Ok(self)
    }
}

/// The schemas of the rows of views.
struct Rows(BTreeMap<&'static str, Value>);

impl Visitor for Rows {
    fn view<V: View>(&mut self) {
        self.0.insert(V::NAME, Shape::of::<V::Row>().schema());
    }
}
