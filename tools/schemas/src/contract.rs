//! The promises of a stack to its callers and to consumers of its events.

use std::collections::BTreeMap;
use std::fs;
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
    /// The folder of the documents, in the repository of a stack.
    pub const FOLDER: &str = "docs/api";

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

    /// The documents that the stack in this folder lacks, or has in another form: their paths in it, and their texts.
    /// A document has no text if the stack has no context, and so nothing to describe.
    ///
    /// # Errors
    /// A lock can't be read.
    pub fn stale_documents(self, root: &Path) -> Result<Vec<(String, Option<String>)>, LockError> {
        let (is_empty, openapi) = (self.is_empty(), self.openapi());
        let asyncapi = self.with_locks(root)?.asyncapi();
        let stale = |(name, document)| {
            let path = format!("{}/{name}", Self::FOLDER);
            let found = fs::read_to_string(root.join(&path)).ok();
            let wanted: Option<Value> = (!is_empty).then_some(document);
            let is_it = match (&found, &wanted) {
                (Some(found), Some(wanted)) => {
                    serde_json::from_str::<Value>(found).is_ok_and(|found| found == *wanted)
                }
                (found, wanted) => found.is_none() && wanted.is_none(),
            };
            (!is_it).then(|| (path, wanted.map(|document| format!("{document:#}\n"))))
        };
        let all = [("openapi.json", openapi), ("asyncapi.json", asyncapi)];
        Ok(all.into_iter().filter_map(stale).collect())
    }
}

/// The schemas of the rows of views.
struct Rows(BTreeMap<&'static str, Value>);

impl Visitor for Rows {
    fn view<V: View>(&mut self) {
        self.0.insert(V::NAME, Shape::of::<V::Row>().schema());
    }
}
