//! What a stack promises those who call it and those who take its events from the bus.

use std::collections::BTreeMap;
use std::path::Path;

use ringfence_core::CatalogError;
use ringfence_stack::{MemberList, Members, Stack, Visitor};
use ringfence_views::View;
use serde_json::Value;

use crate::{Lock, LockError, Shape, compare, present};

/// What a stack promises to callers and consumers: [`Contract::openapi`] and [`Contract::asyncapi`] write it down.
pub struct Contract {
    pub(crate) stack: Stack,
    /// The locks, by context.
    pub(crate) locks: BTreeMap<&'static str, Lock>,
    /// The schemas of the rows, by view.
    pub(crate) rows: BTreeMap<&'static str, Value>,
}

impl Contract {
    /// That of the code as it is. It knows the newest version of each type of events.
    ///
    /// # Errors
    /// Two contexts contradict each other.
    pub fn of<M: Members>() -> Result<Self, CatalogError> {
        let mut rows = Rows(BTreeMap::new());
        MemberList::walk::<M>(&mut rows);
        Ok(Self { stack: Stack::of::<M>()?, locks: present::<M>(), rows: rows.0 })
    }

    /// The same with all versions of events in the locks of the stack in this folder.
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
