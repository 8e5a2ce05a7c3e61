//! What reads events, with the code that decodes them: slices, views, and the contexts with streams. A
//! [`ringfence_stack::Stack`] does not have them, so that functions which hold one do not link that code.

use anyhow::{Context as _, Result};
use ringfence::{Aggregates, Context, Dcb, Reads, ReadsOf, SequencedEvent, Slice, TopicEvent};
use ringfence_aggregate_log::whole;
use ringfence_document_log::{Document, Documents, OfDocument, decode};
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::View;
use serde::de::Error as _;
use serde_json::Error;

type Read = fn(&SequencedEvent) -> Result<(), Error>;

/// A slice, a view, or a context with streams.
struct Reader {
    name: &'static str,
    reads: fn(&SequencedEvent) -> bool,
    read: Read,
}

#[derive(Default)]
pub(crate) struct Readers(Vec<Reader>);

/// A reader that can't read an event.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) reader: &'static str,
    /// The member of the payload that it can't read, if that is known.
    pub(crate) field: Option<String>,
    pub(crate) why: Error,
}

impl Readers {
    pub(crate) fn of<M: Members>() -> Self {
        let mut readers = Self::default();
        MemberList::walk::<M>(&mut readers);
        readers
    }

    /// Fails if a slice or a view that reads events of this type can't read this one.
    pub(crate) fn check(&self, event: &SequencedEvent) -> Result<()> {
        for Reader { name, read, .. } in self.0.iter().filter(|reader| (reader.reads)(event)) {
            read(event).with_context(|| format!("{name} can't read {}", event.event_type))?;
        }
        Ok(())
    }

    /// The readers of events like this one that can't read it.
    pub(crate) fn unreadable(&self, event: &SequencedEvent) -> Vec<Unreadable> {
        let readers = self.0.iter().filter(|reader| (reader.reads)(event));
        let unreadable = readers.filter_map(|Reader { name, read, .. }| {
            let why = read(event).err()?;
            let field = field(event, *read, &why);
            Some(Unreadable { reader: name, field, why })
        });
        unreadable.collect()
    }

    fn add<R: Reads>(&mut self, name: &'static str, reads: fn(&SequencedEvent) -> bool) {
        self.0.push(Reader { name, reads, read: |event| R::decode(event).map(drop) });
    }

    fn react<S: Slice>(&mut self) {
        if S::REACTS_TO.is_empty() {
            return;
        }
        let reads = |event: &SequencedEvent| {
            let mut causes = S::REACTS_TO.iter();
            causes.any(|of| of.context == event.context && of.event_type == event.event_type)
        };
        let read = |event: &SequencedEvent| S::react(&TopicEvent::new(event.clone())).map(drop);
        self.0.push(Reader { name: S::NAME, reads, read });
    }

    fn stream<C: Context>(&mut self, read: Read) {
        let reads =
            |event: &SequencedEvent| !event.partition.is_of_dcb_log() && event.context == C::NAME;
        self.0.push(Reader { name: C::NAME, reads, read });
    }
}

/// The field that an error is about. One that is missing is in its text. One that is wrong is that without which the
/// event is read, or fails otherwise.
fn field(event: &SequencedEvent, read: Read, why: &Error) -> Option<String> {
    let text = why.to_string();
    if let Some((name, _)) = text.strip_prefix("missing field `").and_then(|it| it.split_once('`'))
    {
        return Some(name.to_owned());
    }
    let fails_alike = |name: &&String| {
        let mut without = event.clone();
        without.data.as_object_mut().map(|data| data.remove(*name));
        read(&without).is_err_and(|error| error.to_string() == text)
    };
    event.data.as_object()?.keys().find(|name| !fails_alike(name)).cloned()
}

fn reads_dcb<R: Reads>(event: &SequencedEvent) -> bool {
    event.partition.is_of_dcb_log() && R::TYPES.contains(&&*event.event_type)
}

fn reads_aggregate<S: Slice>(event: &SequencedEvent) -> bool {
    event.context == S::Context::NAME
        && event.partition.as_str().contains('#')
        && ReadsOf::<S>::TYPES.contains(&&*event.event_type)
}

fn read_aggregate<S: Slice>(event: &SequencedEvent) -> Result<(), Error> {
    let catalog = S::Context::catalog().map_err(Error::custom)?;
    ReadsOf::<S>::decode(&whole(event.clone(), &catalog)).map(drop)
}

fn reads_view<V: View>(event: &SequencedEvent) -> bool {
    let is_of_stream = V::STREAMS.contains(&&*event.context);
    (event.partition.is_of_dcb_log() || is_of_stream)
        && V::Reads::TYPES.contains(&&*event.event_type)
}

impl Visitor for Readers {
    fn document_context<D: Document, C: Context<Log = Documents<D>>>(&mut self) {
        self.stream::<C>(|event| decode::<C, D>(event).map(drop));
    }

    fn dcb_slice<S: Slice<Context: Context<Log = Dcb>>>(&mut self) {
        self.add::<ReadsOf<S>>(S::NAME, reads_dcb::<ReadsOf<S>>);
        self.react::<S>();
    }

    fn aggregate_slice<S: Slice<Context: Context<Log = Aggregates>>>(&mut self) {
        let (reads, read) = (reads_aggregate::<S>, read_aggregate::<S>);
        self.0.push(Reader { name: S::NAME, reads, read });
        self.react::<S>();
    }

    fn document_slice<S: OfDocument>(&mut self) {
        self.react::<S>();
    }

    fn view<V: View>(&mut self) {
        self.add::<V::Reads>(V::NAME, reads_view::<V>);
    }
}

#[cfg(test)]
mod tests {
    use ringfence::{BoundaryId, Metadata, prelude::*};
    use serde_json::json;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Event)]
    struct Joined {
        #[tag(partition)]
        member_id: String,
        name: String,
    }

    #[derive(Reads)]
    #[expect(dead_code, reason = "only decoded")]
    enum Read {
        Joined { member_id: String, name: String },
    }

    #[derive(Default)]
    struct Club;

    impl State for Club {
        type Reads = Read;

        fn evolve(self, _: Read) -> Self {
            self
        }
    }

    #[derive(Clone, Debug, PartialEq, Command)]
    struct Join {
        #[tag(partition)]
        member_id: String,
    }

    struct Members;

    impl Context for Members {
        const NAME: &'static str = "members";
        type Log = Aggregates;

        fn catalog() -> Result<Catalog, CatalogError> {
            Catalog::of_streams(Self::NAME, [Joined::SCHEMA])
        }
    }

    impl Slice for Join {
        const NAME: &'static str = "join";
        type Context = Members;
        type State = Club;
        type Writes = Joined;
        type Rejection = Never;

        fn decide(&self, _: &Club, _: &CommandContext) -> Result<Vec<Joined>, Never> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn the_payload_of_an_aggregate_s_event_need_not_have_the_aggregate_s_id() {
        let mut readers = Readers::default();
        readers.aggregate_slice::<Join>();
        let unreadable = |data| {
            let event = SequencedEvent {
                partition: BoundaryId::stored("members#ada"),
                slot: 1,
                at: 0,
                rest: 0,
                event_type: "Joined".to_owned(),
                context: "members".to_owned(),
                tags: Vec::new(),
                data,
                metadata: Metadata::default(),
            };
            let found = readers.unreadable(&event).into_iter();
            found.map(|it| (it.reader, it.field)).collect::<Vec<_>>()
        };
        assert_eq!(unreadable(json!({ "name": "Ada" })), []);
        assert_eq!(unreadable(json!({})), [("join", Some("name".to_owned()))]);
    }
}
