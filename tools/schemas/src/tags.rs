//! The tags of events by their payloads. Only the types can make these tags, and a catalog does not have the types.

use std::collections::BTreeMap;

use ringfence_core::{Context, Current, Event, EventVisitor, LogKind, LogName, Slice, Tag, Writes};
use ringfence_log::Log;
use ringfence_stack::{MemberList, Members, Visitor};
use serde_json::{Error, Value};

use crate::readers::forget;

/// Makes the tags of a payload of a type.
type TagsOf = fn(&Value) -> Result<Vec<Tag>, Error>;

/// Makes tags from payloads, for each type of events that a context on the DCB log declares.
#[derive(Clone, Debug, Default)]
pub struct PayloadTags {
    by_type: BTreeMap<&'static str, TagsOf>,
    /// Whether the context whose members are visited is on the DCB log.
    is_dcb: bool,
}

impl PayloadTags {
    /// For the types of the stack that `M` lists.
    #[must_use]
    pub fn of<M: Members>() -> Self {
        let mut tags = Self::default();
        MemberList::walk::<M>(&mut tags);
        tags
    }

    /// The tags that an event with this payload must have; `None` if the stack does not list its type. A sealed value has
    /// none: without its key nobody can make its blind tag.
    ///
    /// # Errors
    /// The type can't read the payload.
    #[must_use]
    pub fn of_event(&self, event: &Current<'_>) -> Option<Result<Vec<Tag>, Error>> {
        let tags = self.by_type.get(&*event.event_type)?;
        let mut data = event.data.clone();
        forget(&mut data);
        Some(tags(&data))
    }
}

impl EventVisitor for PayloadTags {
    fn event<E: Event>(&mut self) {
        if self.is_dcb {
            self.by_type.insert(E::NAME, |data| E::deserialize(data).map(|event| event.tags()));
        }
    }
}

impl Visitor for PayloadTags {
    fn context<C: Context<Log: ringfence_log::Sourced>>(&mut self) {
        self.is_dcb = C::Log::KIND == LogKind::Dcb;
    }

    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        S::Writes::visit(self);
    }

    fn event<E: Event>(&mut self) {
        EventVisitor::event::<E>(self);
    }
}
