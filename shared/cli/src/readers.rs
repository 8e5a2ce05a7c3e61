//! The slices and views that read events of the DCB log, with the code that decodes them. A [`ringfence_stack::Stack`]
//! does not have them, so that functions which hold one do not link that code.

use anyhow::{Context, Result};
use ringfence::{DcbSlice, Reads, SequencedEvent};
use ringfence_stack::{List, Members, Visitor};
use ringfence_views::View;

/// A slice or a view.
struct Reader {
    name: &'static str,
    types: &'static [&'static str],
    read: fn(&SequencedEvent) -> Result<(), serde_json::Error>,
}

#[derive(Default)]
pub(crate) struct Readers(Vec<Reader>);

impl Readers {
    pub(crate) fn of<M: Members>() -> Self {
        let mut readers = Self::default();
        List::walk::<M>(&mut readers);
        readers
    }

    /// Fails if a slice or a view that reads events of this type can't read this one.
    pub(crate) fn check(&self, event: &SequencedEvent) -> Result<()> {
        let event_type = &*event.event_type;
        for Reader { name, read, .. } in self.0.iter().filter(|r| r.types.contains(&event_type)) {
            read(event).with_context(|| format!("{name} can't read {event_type}"))?;
        }
        Ok(())
    }

    fn add<R: Reads>(&mut self, name: &'static str) {
        self.0.push(Reader { name, types: R::TYPES, read: |event| R::decode(event).map(drop) });
    }
}

impl Visitor for Readers {
    fn dcb_slice<S: DcbSlice>(&mut self) {
        self.add::<S::Reads>(S::NAME);
    }

    fn view<V: View>(&mut self) {
        self.add::<V::Reads>(V::NAME);
    }
}
