//! A view: the rows that an event touches, and each row after the event.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{Current, Due, DueRow, Principal, Reads, SequencedEvent, personal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::error::ViewError;
use crate::generation::Generation;

/// A read model, as pure functions. Its rows follow from the events alone. They come in the order of the
/// index: events of one partition in their order, events of different partitions in any order.
pub trait View {
    /// Name in kebab case: the first part of its HTTP path.
    const NAME: &'static str;
    /// The version of the fold. Raise it with each change of what `rows` and `evolve` make of events, and rebuild the
    /// view after the deploy. The checks of a stack compare the rows and ask for it.
    const VERSION: u32 = 0;
    /// How many keys of the table its rows are spread over, at most 64. One key takes 1,000 rows a second, but a list
    /// asks all of them. A change takes effect with the next rebuild.
    const SHARDS: u32 = 1;
    /// The contexts of the streams whose events it reads, besides those of the DCB log. They are named
    /// because other streams may have types of the same names: no catalog knows all types of streams.
    const STREAMS: &'static [&'static str] = &[];
    /// A caller who has a token needs one of these scopes to read the view over HTTP. If the list is empty, every token
    /// will do. Callers who sign with IAM need no scope.
    const SCOPES: &'static [&'static str] = &[];
    /// Which rows a caller of the HTTP API sees; without a rule, all. A row that it does not see is missing from its
    /// lists, and is not found. Operators see all rows: by direct invokes of query-views, in the console and on the
    /// command line. So does everybody on an API without an authorizer.
    const VISIBLE: Option<RowRule<Self::Row>> = None;
    /// The events that it reads.
    type Reads: Reads;
    /// One row.
    type Row: Serialize + DeserializeOwned + JsonSchema;

    /// The ids of the rows that the event touches; empty if it changes nothing.
    fn rows(event: &Self::Reads) -> Vec<String>;

    /// The row `id` after the event; `None` removes it.
    fn evolve(row: Option<Self::Row>, id: &str, event: &Self::Reads) -> Option<Self::Row>;
}

/// Folds an event into rows in memory, by id, as `project-views` folds it into the stored ones. An event that the
/// view does not read changes nothing.
///
/// # Errors
/// [`ViewError::Event`]: the event does not have the shape of its type.
pub fn fold<V: View>(
    rows: &mut BTreeMap<String, V::Row>,
    event: &Current<'_>,
) -> Result<(), ViewError> {
    if !Definition::of::<V>().reads(event) {
        return Ok(());
    }
    let failed = |source: serde_json::Error| ViewError::Event {
        view: V::NAME,
        event: event.id(),
        source: source.into(),
    };
    let read = V::Reads::decode(event).map_err(failed)?;
    for id in BTreeSet::from_iter(V::rows(&read)) {
        let row = V::evolve(rows.remove(&id), &id, &read);
        rows.extend(row.map(|row| (id, row)));
    }
    Ok(())
}

/// The most keys of a view: a list asks all of them at once.
const SHARDS_MAX: u32 = 64;

/// The shards that a view or a due asks for.
pub(crate) const fn checked(shards: u32) -> u32 {
    assert!(0 < shards && shards <= SHARDS_MAX, "SHARDS is a number from 1 to 64");
    shards
}

/// Whether the row of this id is visible to a principal. It is pure.
pub type RowRule<R> = fn(id: &str, row: &R, principal: &Principal) -> bool;

type Touch = fn(&Current<'_>) -> Result<BTreeSet<String>, serde_json::Error>;
type Evolve = fn(Option<Value>, &str, &Current<'_>) -> Result<Option<Value>, serde_json::Error>;
type Sees = fn(&Principal, &str, Option<&Value>) -> bool;

/// A view without its types, so that one projector runs them all.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The view's name.
    pub name: &'static str,
    /// The version of its fold.
    pub version: u32,
    /// The event types that it reads.
    pub types: &'static [&'static str],
    /// The contexts of the streams that it reads.
    pub streams: &'static [&'static str],
    /// How many keys the rows of its next generation are spread over.
    pub shards: u32,
    /// Whether it is a due, whose rows may have a time.
    pub is_due: bool,
    /// The scopes of which a token needs one.
    pub scopes: &'static [&'static str],
    /// Whether a rule says which rows a caller sees.
    pub has_rule: bool,
    touch: Touch,
    evolve: Evolve,
    sees: Sees,
    is_personal: fn() -> bool,
}

impl Generation {
    /// The first one of a view.
    #[must_use]
    pub fn first(view: &Definition) -> Self {
        Self { number: 1, shards: view.shards }
    }

    /// The one after it.
    pub(crate) fn next(self, view: &Definition) -> Self {
        Self { number: self.number + 1, shards: view.shards }
    }
}

impl Definition {
    /// The view `V`.
    #[must_use]
    pub fn of<V: View>() -> Self {
        Self {
            name: V::NAME,
            version: V::VERSION,
            types: V::Reads::TYPES,
            streams: V::STREAMS,
            shards: const { checked(V::SHARDS) },
            is_due: false,
            scopes: V::SCOPES,
            has_rule: V::VISIBLE.is_some(),
            touch: |event| Ok(V::rows(&V::Reads::decode(event)?).into_iter().collect()),
            evolve: |row, id, event| {
                let row = row.map(serde_json::from_value).transpose()?;
                let row: Option<V::Row> = V::evolve(row, id, &V::Reads::decode(event)?);
                row.map(serde_json::to_value).transpose()
            },
            is_personal: personal::is_in::<V::Row>,
            sees: |principal, id, row| {
                V::VISIBLE.is_none_or(|is_visible| {
                    // The rule can't judge a parked row or one of an older shape, so callers don't see it.
                    let row = row.and_then(|row| V::Row::deserialize(row).ok());
                    row.is_some_and(|row| is_visible(id, &row, principal))
                })
            },
        }
    }

    /// The due `D` as a view of [`DueRow`]s, under the name of its slice.
    #[must_use]
    pub fn of_due<D: Due>() -> Self {
        Self {
            name: D::NAME,
            version: D::VERSION,
            types: <D as Due>::Reads::TYPES,
            streams: D::STREAMS,
            shards: const { checked(D::SHARDS) },
            is_due: true,
            scopes: &[],
            has_rule: false,
            touch: |event| Ok(D::rows(&<D as Due>::Reads::decode(event)?).into_iter().collect()),
            evolve: |row, id, event| {
                let row = row.map(serde_json::from_value).transpose()?;
                let row = DueRow::fold::<D>(row, id, event)?;
                row.map(serde_json::to_value).transpose()
            },
            is_personal: || false,
            sees: |_, _, _| false,
        }
    }

    /// Whether its rows can have personal data, which query-views opens.
    #[must_use]
    pub fn is_personal(&self) -> bool {
        (self.is_personal)()
    }

    /// Whether the principal sees this row of the view, or one that is parked and so has no content.
    pub(crate) fn sees(&self, principal: &Principal, id: &str, row: Option<&Value>) -> bool {
        (self.sees)(principal, id, row)
    }

    /// The rows that an event of the view touches.
    ///
    /// # Errors
    /// The payload does not have the shape of the type.
    pub fn touch(&self, event: &Current<'_>) -> Result<BTreeSet<String>, serde_json::Error> {
        (self.touch)(event)
    }

    /// Whether the view reads the event.
    #[must_use]
    pub fn reads(&self, event: &SequencedEvent) -> bool {
        let known =
            event.partition.is_of_dcb_log() || self.streams.contains(&event.context.as_str());
        known && self.types.contains(&event.event_type.as_str())
    }

    /// Whether it may read the event of an entry.
    pub(crate) fn wants(&self, event_type: &str) -> bool {
        self.types.contains(&event_type)
    }

    /// Folds an event that the view reads into rows in memory, by id, as they are stored.
    ///
    /// # Errors
    /// The payload does not have the shape of the type, or a row does not match the view's row type.
    pub fn fold(
        &self,
        rows: &mut BTreeMap<String, Value>,
        event: &Current<'_>,
    ) -> Result<(), serde_json::Error> {
        for id in self.touch(event)? {
            let row = self.evolve(rows.remove(&id), &id, event)?;
            rows.extend(row.map(|row| (id, row)));
        }
        Ok(())
    }

    /// The row after an event that touches it.
    ///
    /// # Errors
    /// The stored row does not match the view's row type.
    pub(crate) fn evolve(
        &self,
        row: Option<Value>,
        id: &str,
        event: &Current<'_>,
    ) -> Result<Option<Value>, serde_json::Error> {
        (self.evolve)(row, id, event)
    }
}
