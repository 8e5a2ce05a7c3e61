//! Deadlines: a fold of events that says when a command is sent.
//!
//! Nothing is scheduled and nothing is cancelled. The rows follow from the events alone, and the command's decision
//! looks at the log and at the clock again. So a row that is old, or that fires twice, does no harm.

use std::collections::BTreeMap;
use std::error::Error;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::to_value;

use crate::{
    CommandContext, Context, Current, Envelope, LogKind, LogName, LogOf, Metadata, Principal,
    Reads, Slice, Traceparent, decide::case::DueCase, reaction_key,
};

/// A command that is sent at a certain time, unless an event has cleared it before. A due belongs to a slice, and a
/// context lists both.
///
/// A due has rows, which follow from events like the rows of a view. A row may have a time. At that time the row's
/// command is sent, once for each event that has set the time. An event clears the row: usually the one that the
/// command writes, or one that made the command superfluous. So the slice's `decide` must compare the time of the
/// deadline with `now_ms` itself, and the due must read an event that the slice writes.
pub trait Due: Slice {
    /// The contexts of the streams whose events it reads, besides those of the DCB log: its own context, if that is on
    /// a log of streams.
    const STREAMS: &'static [&'static str] = match LogOf::<Self>::KIND {
        LogKind::Dcb => &[],
        LogKind::Aggregates | LogKind::Documents => &[<Self::Context as Context>::NAME],
    };
    /// The version of the fold. Raise it with each change of `rows`, `evolve` and `due_ms` that changes rows, and
    /// rebuild the rows after the deploy. The checks of a stack compare the rows and ask for it.
    const VERSION: u32 = 0;
    /// How many keys of the table the rows are spread over, at most 64. One key takes 1,000 rows a second. A change
    /// takes effect with the next rebuild.
    const SHARDS: u32 = 1;
    /// Whether a sweep waits for the times before the next sweep. Then a command is some hundred milliseconds late and
    /// not up to a minute, and the function runs all the time while something is due soon.
    const LOOKS_AHEAD: bool = false;

    /// The events that set, move or clear a time.
    type Reads: Reads;
    /// The data that the time and the command follow from. Often this is only the time: `u64`.
    type Row: Serialize + DeserializeOwned;

    /// The ids of the rows that the event touches; empty if it changes nothing.
    fn rows(event: &<Self as Due>::Reads) -> Vec<String>;

    /// The row `id` after the event; `None` removes it.
    fn evolve(row: Option<Self::Row>, id: &str, event: &<Self as Due>::Reads) -> Option<Self::Row>;

    /// When the command is due, in milliseconds since 1970: the first moment at which it has something to do; `None`
    /// without a time.
    fn due_ms(row: &Self::Row) -> Option<u64>;

    /// The command of a row.
    ///
    /// # Errors
    /// The row has no command, for example because its id has an older form.
    fn command(id: &str, row: &Self::Row) -> Result<Self, Box<dyn Error + Send + Sync>>;

    /// The deadlines after certain events, as cases ([`crate::kit`]). The checks of a stack run them, and refuse a due
    /// without cases. They also send the command of each row early, in time, late and twice.
    #[must_use]
    fn due_cases() -> Vec<DueCase<Self>> {
        Vec::new()
    }
}

/// A stored row of a due, with the event that set it, which gives its command a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DueRow<R> {
    /// When the command is due, in milliseconds since 1970; absent without a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// The id of the event that last changed the row. Moving a deadline changes it.
    pub cause: String,
    /// When that event was recorded, in milliseconds since 1970.
    pub cause_ms: u64,
    /// The event's metadata that the command's events take over, like a reaction's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The data of the due.
    pub row: R,
}

/// The metadata that a command takes over from its cause.
const TAKEN_OVER: [&str; 3] = ["correlationId", Metadata::TRACEPARENT, Metadata::PRINCIPAL];

impl<R: Serialize + DeserializeOwned> DueRow<R> {
    /// The row of `D` after an event. If the row does not change, its cause stays too.
    ///
    /// # Errors
    /// The payload does not have the shape of its type.
    pub fn fold<D: Due<Row = R>>(
        old: Option<Self>,
        id: &str,
        event: &Current<'_>,
    ) -> Result<Option<Self>, serde_json::Error> {
        let read = <D as Due>::Reads::decode(event)?;
        let was = old.as_ref().map(|old| to_value(&old.row)).transpose()?;
        let (row, old) = match old {
            Some(DueRow { due, cause, cause_ms, metadata, row }) => {
                (Some(row), Some((due, cause, cause_ms, metadata)))
            }
            None => (None, None),
        };
        let Some(row) = D::evolve(row, id, &read) else { return Ok(None) };
        let is = to_value(&row)?;
        Ok(Some(match old.filter(|_| was == Some(is)) {
            Some((due, cause, cause_ms, metadata)) => Self { due, cause, cause_ms, metadata, row },
            None => {
                let text = |key: &str| Some((key.to_owned(), event.metadata.text(key)?.to_owned()));
                Self {
                    due: D::due_ms(&row),
                    cause: event.id(),
                    cause_ms: event.at,
                    metadata: TAKEN_OVER.into_iter().filter_map(text).collect(),
                    row,
                }
            }
        }))
    }

    /// The envelope of the row's command at a time in milliseconds since 1970. Its key consists of the cause and the
    /// row, so the command takes effect once, however often sweeps send it.
    #[must_use]
    pub fn envelope<D: Due<Row = R>>(&self, id: &str, now_ms: u64) -> Envelope {
        // The key of a reaction to the same event names tags, each of which has a colon before any other mark.
        let key = reaction_key(&self.cause, &format!("due#{id}"));
        let taken = self.metadata.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        // Its span is a child of the cause's span.
        let parent = self.metadata.get(Metadata::TRACEPARENT).and_then(|text| text.parse().ok());
        let span = Traceparent::of_command(&key, D::NAME, parent).to_string();
        let own = [
            ("commandId", &*key),
            ("causationId", &self.cause),
            (Metadata::TRACEPARENT, &span),
            (Metadata::BY, D::NAME),
        ];
        let mut metadata = Metadata::default();
        for (name, text) in [("correlationId", &*key)].into_iter().chain(taken).chain(own) {
            metadata.insert(name, text).expect("none of these keys is the log's own");
        }
        let principal = metadata.text(Metadata::PRINCIPAL).map(Principal::from);
        Envelope {
            context: CommandContext {
                now_ms,
                command_id: key.clone(),
                principal,
                is_of_stack: true,
            },
            metadata,
            idempotency_key: Some(key),
            cause_ms: Some(self.cause_ms),
            deadline_ms: None,
        }
    }
}
