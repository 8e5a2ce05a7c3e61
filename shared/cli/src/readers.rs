//! What reads events, with the code that decodes them: slices and views. A
//! [`ringfence_stack::Stack`] does not have them, so that functions which hold one do not link that code.

use anyhow::{Context as _, Result};
use ringfence::{
    Catalogs, Cause, Context, Current, CurrentError, LogOf, NewerVersion, Reads, SequencedEvent,
    Slice, TopicEvent,
};
use ringfence_logs::Log;
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::View;
use serde::de::Error as _;
use serde_json::Error;

/// Reads an event; `None` if it does not read events like this one.
type Read = fn(&Current<'_>) -> Option<Result<(), Error>>;

/// A slice or a view.
struct Reader {
    name: &'static str,
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
    pub(crate) fn check(&self, catalogs: &Catalogs, event: &SequencedEvent) -> Result<()> {
        let event = catalogs.current(event)?;
        for Reader { name, read } in &self.0 {
            read(&event)
                .unwrap_or(Ok(()))
                .with_context(|| format!("{name} can't read {}", event.event_type))?;
        }
        Ok(())
    }

    /// The readers of events like this one that can't read it. If its newest shape can't be made, nothing can read it,
    /// and the catalog is named instead.
    pub(crate) fn unreadable(
        &self,
        catalogs: &Catalogs,
        event: &SequencedEvent,
    ) -> Vec<Unreadable> {
        let event = match catalogs.current(event) {
            Ok(event) => event,
            Err(error) => {
                let why = match error {
                    CurrentError::Newer(NewerVersion { version, known, .. }) => {
                        format!("version {version}, and {known} is the newest that is known")
                    }
                    CurrentError::Upcast { source, .. } => source.to_string(),
                };
                let (reader, why) = ("the catalog", Error::custom(why));
                return vec![Unreadable { reader, field: None, why }];
            }
        };
        let unreadable = self.0.iter().filter_map(|Reader { name, read }| {
            let why = read(&event)?.err()?;
            let field = field(catalogs, &event, *read, &why);
            Some(Unreadable { reader: name, field, why })
        });
        unreadable.collect()
    }

    fn react<S: Slice>(&mut self) {
        let read: Read = |event| {
            let cause = cause::<S>(event)?;
            let event = TopicEvent::new(SequencedEvent::clone(event));
            let current = cause.current(&event).map_err(Error::custom);
            Some(current.and_then(|event| S::react(&event)).map(drop))
        };
        if !S::REACTS_TO.is_empty() {
            self.0.push(Reader { name: S::NAME, read });
        }
    }
}

/// What of the slice's causes the event is.
fn cause<S: Slice>(event: &SequencedEvent) -> Option<&'static Cause> {
    let mut causes = S::REACTS_TO.iter();
    causes.find(|of| of.context == event.context && of.event_type == event.event_type)
}

/// The field that an error is about. One that is missing is in its text. One that is wrong is that without which the
/// event is read, or fails otherwise.
fn field(catalogs: &Catalogs, event: &Current<'_>, read: Read, why: &Error) -> Option<String> {
    let text = why.to_string();
    if let Some((name, _)) = text.strip_prefix("missing field `").and_then(|it| it.split_once('`'))
    {
        return Some(name.to_owned());
    }
    let fails_alike = |name: &&String| {
        let mut without = SequencedEvent::clone(event);
        without.data.as_object_mut().map(|data| data.remove(*name));
        let without = catalogs.current(without);
        let failed = without.ok().and_then(|event| read(&event)?.err());
        failed.is_some_and(|error| error.to_string() == text)
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
        self.0.push(Reader { name: S::NAME, read: LogOf::<S>::read });
        self.react::<S>();
    }

    fn view<V: View>(&mut self) {
        let read: Read = |event| reads_view::<V>(event).then(|| V::Reads::decode(event).map(drop));
        self.0.push(Reader { name: V::NAME, read });
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
                version: 1,
                data,
                metadata: Metadata::default(),
            };
            let found = readers.unreadable(&Catalogs::default(), &event).into_iter();
            found.map(|it| (it.reader, it.field)).collect::<Vec<_>>()
        };
        assert_eq!(unreadable(json!({ "name": "Ada" })), []);
        assert_eq!(unreadable(json!({})), [("join", Some("name".to_owned()))]);
    }
}
