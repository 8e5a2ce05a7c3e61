//! The readers of events, with the code that decodes events: slices, their reactions, views, and reactors. A
//! [`ringfence_stack::Stack`] does not have readers, so functions with a stack do not link that code.

use std::any::type_name;
use std::fmt;

use ringfence_core::personal::{FORGOTTEN, Form, OF, has, values};
use ringfence_core::{
    Catalogs, Cause, Context, Current, CurrentError, Due, LogKind, LogName, LogOf, NewerVersion,
    Reads, SequencedEvent, Slice, TopicEvent, is_personal,
};
use ringfence_log::Log;
use ringfence_reactors::Reactor;
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::{Definition, View};
use serde::de::Error as _;
use serde_json::{Error, Value, json};

use crate::Audience;
use crate::fold::Fold;
use crate::lock::FoldKind;

/// Reads an event. The arguments are the event as it is stored, and in the newest shape of its type. `None` if the
/// reader does not read such events.
type Read = fn(&SequencedEvent, &Current<'_>) -> Option<Result<(), Error>>;

/// A slice, its reaction, a view, or a reactor.
#[derive(Clone, Copy, Debug)]
struct Reader {
    name: &'static str,
    audience: Audience,
    /// Whether it gets personal values opened. Without a vault they are sealed.
    opens: bool,
    read: Read,
}

/// The readers of a stack's events.
#[derive(Clone, Debug, Default)]
pub struct Readers {
    all: Vec<Reader>,
    /// The readers that store their results.
    folds: Vec<Fold>,
    /// The context whose members are visited.
    context: &'static str,
}

/// A reader that can't read an event.
#[derive(Debug)]
pub struct Unreadable {
    /// The name of the slice, the view or the reactor.
    pub reader: &'static str,
    /// The audience that wants the event: decisions, reactions or rows.
    pub audience: Audience,
    /// The member of the payload that it can't read, if that is known.
    pub field: Option<String>,
    /// Why.
    pub why: Error,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.why.to_string();
        match &self.field {
            Some(field) if !why.contains(&format!("`{field}`")) => write!(f, "`{field}`: {why}"),
            _ => f.write_str(&why),
        }
    }
}

impl Readers {
    /// The readers that the stack `M` lists.
    #[must_use]
    pub fn of<M: Members>() -> Self {
        let mut readers = Self::default();
        MemberList::walk::<M>(&mut readers);
        readers
    }

    /// The readers of such events that can't read this one. If its newest shape can't be made, no reader can read it,
    /// and the result names the catalog instead.
    ///
    /// A reader without a vault gets personal values sealed. For the others they are opened; here each is forgotten.
    #[must_use]
    pub fn unreadable(&self, catalogs: &Catalogs, event: &SequencedEvent) -> Vec<Unreadable> {
        if !has(&event.data, Form::Sealed) {
            return self.unreadable_by(catalogs, event, |_| true);
        }
        let mut opened = event.clone();
        forget(&mut opened.data);
        let mut found = self.unreadable_by(catalogs, event, |of| !of.opens);
        found.extend(self.unreadable_by(catalogs, &opened, |of| of.opens));
        // A catalog that can't make the newest shape says it for both.
        found.dedup_by(|one, other| one.reader == other.reader && one.audience == other.audience);
        found
    }

    fn unreadable_by(
        &self,
        catalogs: &Catalogs,
        event: &SequencedEvent,
        is_wanted: impl Fn(&Reader) -> bool,
    ) -> Vec<Unreadable> {
        let current = match catalogs.current(event) {
            Ok(event) => event,
            Err(error) => {
                let (reader, why) = ("the catalog", why(error));
                return vec![Unreadable { reader, audience: Audience::Log, field: None, why }];
            }
        };
        let wanted = self.all.iter().filter(|reader| is_wanted(reader));
        let unreadable = wanted.filter_map(|Reader { name, audience, read, .. }| {
            let why = read(event, &current)?.err()?;
            let field = field(catalogs, &current, *read, &why);
            Some(Unreadable { reader: name, audience: *audience, field, why })
        });
        unreadable.collect()
    }

    fn add(&mut self, name: &'static str, audience: Audience, opens: bool, read: Read) {
        self.all.push(Reader { name, audience, opens, read });
    }

    /// The folds of a context whose results are stored.
    pub(crate) fn folds(&self, context: &str) -> impl Iterator<Item = &Fold> {
        self.folds.iter().filter(move |fold| fold.context == context)
    }
}

/// Puts a forgotten value in the place of each sealed one, which a reader without a key can't decode.
pub(crate) fn forget(data: &mut Value) {
    for value in values(data, Form::Sealed) {
        *value = json!({ FORGOTTEN: true, OF: value[OF] });
    }
}

/// The cause of the slice that the event is.
fn cause<S: Slice>(event: &SequencedEvent) -> Option<&'static Cause> {
    let mut causes = S::REACTS_TO.iter();
    causes.find(|of| of.context == event.context && of.event_type == event.event_type)
}

/// Reads an event as the bus delivers it: as it is stored. A cause has its own upcasts.
fn react<S: Slice>(stored: &SequencedEvent) -> Option<Result<(), Error>> {
    let cause = cause::<S>(stored)?;
    let event = TopicEvent::new(stored.clone());
    let current = cause.current(&event).map_err(why);
    Some(current.and_then(|event| S::react(&event)).map(drop))
}

/// The reason why an event has no newest shape. It is without the event's id, so it is equal for all events with this
/// fault.
fn why(error: CurrentError) -> Error {
    match error {
        CurrentError::Newer(NewerVersion { version, known, .. }) => {
            Error::custom(format!("version {version}, and {known} is the newest that is known"))
        }
        CurrentError::Upcast { source, .. } => Error::custom(source),
    }
}

/// The field that an error is about. The error's text names a missing field. A field is wrong if the event without it
/// is read, or fails with another error.
fn field(catalogs: &Catalogs, event: &Current<'_>, read: Read, why: &Error) -> Option<String> {
    let text = why.to_string();
    if let Some((name, _)) = text.strip_prefix("missing field `").and_then(|it| it.split_once('`'))
    {
        return Some(name.to_owned());
    }
    let fails_alike = |name: &&String| {
        let mut without = SequencedEvent::clone(event);
        without.data.as_object_mut().map(|data| data.remove(*name));
        let current = catalogs.current(&without);
        let failed = current.ok().and_then(|current| read(&without, &current)?.err());
        failed.is_some_and(|error| error.to_string() == text)
    };
    event.data.as_object()?.keys().find(|name| !fails_alike(name)).cloned()
}

/// Whether a fold of these types, and of these contexts with streams, reads the event.
fn is_read(streams: &[&str], types: &[&str], event: &SequencedEvent) -> bool {
    let is_of_stream = streams.contains(&&*event.context);
    (event.partition.is_of_dcb_log() || is_of_stream) && types.contains(&&*event.event_type)
}

impl Visitor for Readers {
    fn context<C: Context<Log: ringfence_log::Sourced>>(&mut self) {
        self.context = C::NAME;
    }

    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        self.add(S::NAME, Audience::Log, true, |_, event| LogOf::<S>::read(event));
        if !S::REACTS_TO.is_empty() {
            self.add(S::NAME, Audience::Bus, is_personal::<S>(), |stored, _| react::<S>(stored));
        }
        let kind = match LogOf::<S>::KIND {
            LogKind::Documents => FoldKind::Document,
            LogKind::Dcb | LogKind::Aggregates => FoldKind::State,
        };
        for state in LogOf::<S>::kept() {
            // All slices of a context have its documents.
            let has = |fold: &Fold| {
                (fold.context, fold.kind, fold.name) == (S::Context::NAME, kind, state.name)
            };
            if !self.folds.iter().any(has) {
                self.folds.push(Fold::of_state(S::Context::NAME, kind, state));
            }
        }
    }

    fn due<D: Due<Context: Context<Log: Log<D>>>>(&mut self) {
        let read: Read = |_, event| {
            let is_read = is_read(D::STREAMS, <D as Due>::Reads::TYPES, event);
            is_read.then(|| <D as Due>::Reads::decode(event).map(drop))
        };
        self.add(D::NAME, Audience::Rows, false, read);
        let (rows, code) = (Definition::of_due::<D>(), format!("Due for {}", type_name::<D>()));
        self.folds.push(Fold::of_rows(self.context, FoldKind::Due, rows, &code));
    }

    fn view<V: View>(&mut self) {
        let read: Read = |_, event| {
            let is_read = is_read(V::STREAMS, V::Reads::TYPES, event);
            is_read.then(|| V::Reads::decode(event).map(drop))
        };
        self.add(V::NAME, Audience::Rows, false, read);
        let (rows, code) = (Definition::of::<V>(), format!("View for {}", type_name::<V>()));
        self.folds.push(Fold::of_rows(self.context, FoldKind::View, rows, &code));
    }

    fn reactor<R: Reactor>(&mut self) {
        let read: Read = |_, event| R::reads(event).then(|| R::Reads::decode(event).map(drop));
        self.add(R::NAME, Audience::Bus, !R::Reads::PERSONAL.is_empty(), read);
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{BoundaryId, EventSchema, Metadata, Upcasts, prelude::*};
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
        type Log = ringfence_aggregate_log::Aggregates;

        fn catalog() -> Result<Catalog, CatalogError> {
            Catalog::of_streams(Self::NAME, [Joined::SCHEMA])
        }
    }

    impl Slice for Join {
        const NAME: &'static str = "join";
        const REACTS_TO: &'static [Cause] = &[Cause::named("doors", "Opened")];
        type Context = Members;
        type State = Club;
        type Writes = Joined;
        type Rejection = Never;

        fn decide(&self, _: &Club, _: &CommandContext) -> Result<Vec<Joined>, Never> {
            Ok(Vec::new())
        }

        fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
            let member_id = serde_json::from_value(event.data["by"].clone())?;
            Ok(vec![Self { member_id }])
        }
    }

    fn event(partition: &str, context: &str, event_type: &str) -> SequencedEvent {
        SequencedEvent {
            partition: BoundaryId::stored(partition),
            slot: 1,
            at: 0,
            rest: 0,
            event_type: event_type.to_owned(),
            context: context.to_owned(),
            tags: Vec::new(),
            version: 1,
            data: json!({}),
            metadata: Metadata::default(),
        }
    }

    #[test]
    fn a_reaction_reads_the_event_as_the_bus_has_it() {
        let mut readers = Readers::default();
        readers.slice::<Join>();
        const UPCAST: Upcasts = Upcasts(&[|mut data| {
            data.rename("by", "whose")?;
            Ok(data)
        }]);
        let opened = EventSchema { name: "Opened".into(), upcasts: UPCAST, ..Joined::SCHEMA };
        let catalogs = Catalogs(vec![Catalog::new("doors", [opened]).unwrap()]);
        let check = |version, data| {
            let event = SequencedEvent { version, data, ..event("doorId:d", "doors", "Opened") };
            let found = readers.unreadable(&catalogs, &event).into_iter();
            found.map(|it| it.why.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(check(1, json!({ "by": "ada" })), [""; 0]);
        let newer = "version 2, and 1 is the newest that is known";
        assert_eq!(check(2, json!({ "whose": "ada" })), [newer]);
        let missing = "Opened can't be upcast from version 1 to 2: field `by` is missing";
        assert_eq!(check(1, json!({})), [missing]);
    }

    #[test]
    fn the_payload_of_an_aggregate_s_event_need_not_have_the_aggregate_s_id() {
        let mut readers = Readers::default();
        readers.slice::<Join>();
        let unreadable = |data| {
            let event = SequencedEvent { data, ..event("members#ada", "members", "Joined") };
            let found = readers.unreadable(&Catalogs::default(), &event).into_iter();
            found.map(|it| (it.reader, it.field)).collect::<Vec<_>>()
        };
        assert_eq!(unreadable(json!({ "name": "Ada" })), []);
        assert_eq!(unreadable(json!({})), [("join", Some("name".to_owned()))]);
    }
}
