//! What reads events, with the code that decodes them: slices and views. A
//! [`ringfence_stack::Stack`] does not have them, so that functions which hold one do not link that code.

use anyhow::{Context as _, Result};
use ringfence::{Context, LogOf, Reads, SequencedEvent, Slice, TopicEvent};
use ringfence_logs::Log;
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::View;
use serde_json::Error;

type Read = fn(&SequencedEvent) -> Result<(), Error>;

/// A slice or a view.
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

fn reads_view<V: View>(event: &SequencedEvent) -> bool {
    let is_of_stream = V::STREAMS.contains(&&*event.context);
    (event.partition.is_of_dcb_log() || is_of_stream)
        && V::Reads::TYPES.contains(&&*event.event_type)
}

impl Visitor for Readers {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        self.0.push(Reader {
            name: S::NAME,
            reads: |event| LogOf::<S>::read(event).is_some(),
            read: |event| LogOf::<S>::read(event).unwrap_or(Ok(())),
        });
        self.react::<S>();
    }

    fn view<V: View>(&mut self) {
        let read: Read = |event| V::Reads::decode(event).map(drop);
        self.0.push(Reader { name: V::NAME, reads: reads_view::<V>, read });
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
        readers.slice::<Join>();
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
