//! The items of a reactor in the table of the views, under `view` = `$Reactor-<name>`:
//!
//! | `id` | holds |
//! |---|---|
//! | `CHECKPOINT` | `checkpoint`; `lease`, which each write but the notification's raises, and `owner`, who has raised it; `until` while a run has the lease, and `notified` if the notification rang meanwhile; `trying`, after the event that a careful run handles; `again`, how often an operator sent it back to do all again, and `sentBack`, which names the last time |
//! | `LANE#<lane>` | the receipt: `done`, after the last event whose effects are done; `began`, after the event that is under way, and `n`, how many of its effects are done; `open`, if the next one has begun and has no answer, and `asked`, if a person has asked for that; `v` counts its writes, `lease` is that of the last |
//! | `SKIPPED#<place>` | an event that a person has passed over: `lane`, `event`, `cause`, `why`, `at` |
//! | `PARKED#<lane>` | `from`, before the event that failed, and `place` after it; `event`, `cause`, `tries`, `at`; `next`, when it is tried again, and without it a person is waited for; `ask` and `why`, what a person wants, and `asked`, which names the asking |
//!
//! Places are checkpoints of the index for both kinds of lanes.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Item;
use ringfence_core::BoundaryId;
use ringfence_feed::Checkpoint;
use sha2::{Digest, Sha256};

use crate::error::ReactorError;

pub(crate) const VIEW: &str = "view";
pub(crate) const ID: &str = "id";
/// The beginning of reactors' partition keys.
pub(crate) const REACTOR: &str = "$Reactor-";
const CHECKPOINT: &str = "CHECKPOINT";
const LANE: &str = "LANE#";
pub(crate) const PARKED: &str = "PARKED#";
const SKIPPED: &str = "SKIPPED#";
/// The most bytes of a lane's whole name in a sort key. DynamoDB takes 1,024, and a partition's name may be longer.
const LANE_BYTES_MAX: usize = 512;

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(crate) fn place(checkpoint: Checkpoint) -> AttributeValue {
    number(i64::from(checkpoint))
}

fn key(reactor: &str, id: impl Into<String>) -> Item {
    let view = text(format!("{REACTOR}{reactor}"));
    Item::from([(VIEW.to_owned(), view), (ID.to_owned(), text(id))])
}

pub(crate) fn reader_key(reactor: &str) -> Item {
    key(reactor, CHECKPOINT)
}

pub(crate) fn lane_key(reactor: &str, lane: &BoundaryId) -> Item {
    key(reactor, format!("{LANE}{}", short(lane.as_str())))
}

pub(crate) fn parked_key(reactor: &str, lane: &BoundaryId) -> Item {
    key(reactor, format!("{PARKED}{}", short(lane.as_str())))
}

pub(crate) fn skipped_key(reactor: &str, place: Checkpoint) -> Item {
    key(reactor, format!("{SKIPPED}{place}"))
}

/// The event that a person has skipped, by the place after it, and the reason.
pub(crate) fn skipped(item: &Item) -> Option<(Checkpoint, String)> {
    let item = Attributes(item);
    let place = item.text(ID)?.strip_prefix(SKIPPED)?.parse().ok()?;
    Some((place, item.text("why")?))
}

/// The name of a lane. A long name is cut, with a hash of the whole name behind it. The result is longer than any name
/// that is kept whole, so it is not the name of another lane.
fn short(lane: &str) -> String {
    if lane.len() <= LANE_BYTES_MAX {
        return lane.to_owned();
    }
    let hash: String =
        Sha256::digest(lane.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}~{hash}", &lane[..lane.floor_char_boundary(LANE_BYTES_MAX)])
}

/// The attributes of an item.
struct Attributes<'i>(&'i Item);

impl Attributes<'_> {
    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_s().ok().cloned()
    }

    /// A number; `None` if it is absent.
    fn number<T: std::str::FromStr>(&self, name: &'static str) -> Result<Option<T>, ReactorError> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let parsed = value.as_n().ok().and_then(|digits| digits.parse().ok());
        parsed.map(Some).ok_or_else(|| self.malformed(name))
    }

    fn place(&self, name: &'static str) -> Result<Option<Checkpoint>, ReactorError> {
        self.number::<i64>(name)?
            .map(|number| Checkpoint::try_from(number).map_err(|_| self.malformed(name)))
            .transpose()
    }

    fn malformed(&self, problem: &'static str) -> ReactorError {
        let of = [VIEW, ID].map(|name| self.text(name).unwrap_or_default());
        ReactorError::Malformed { item: of.join(" "), problem }
    }
}

/// How far a reactor is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReactorStanding {
    /// After the last event that is done or parked; `None` before its first run.
    pub checkpoint: Option<Checkpoint>,
    /// When it got there: RFC 3339, UTC.
    pub updated_at: String,
    /// How often its item was written by runs and operators.
    pub(crate) lease: u64,
    /// The run or the operator that has written it last.
    pub(crate) owner: Option<String>,
    /// Until when that run has the lease, in milliseconds since 1970; `None` if it has given it back.
    pub(crate) until_ms: Option<u64>,
    /// How often it was sent back to do all again.
    pub(crate) again: u32,
    /// Names the last time that it was sent back.
    pub(crate) sent_back: Option<String>,
    /// After the event that a careful run was handling when it ended.
    pub(crate) trying: Option<Checkpoint>,
}

impl ReactorStanding {
    pub(crate) fn of(item: &Item) -> Result<Self, ReactorError> {
        let item = Attributes(item);
        Ok(Self {
            checkpoint: item.place("checkpoint")?,
            updated_at: item.text("updatedAt").unwrap_or_default(),
            lease: item.number("lease")?.unwrap_or(0),
            owner: item.text("owner"),
            until_ms: item.number("until")?,
            again: item.number("again")?.unwrap_or(0),
            sent_back: item.text("sentBack"),
            trying: item.place("trying")?,
        })
    }
}

/// How far the effects of a lane are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// After the last event whose effects are all done.
    pub done: Checkpoint,
    /// After the event that is under way.
    pub began: Option<Checkpoint>,
    /// How many of its effects are done.
    pub n: usize,
    /// Whether the next one has begun and may have happened.
    pub(crate) open: bool,
    /// The id of a person's request for which the next one has begun.
    pub(crate) asking: Option<String>,
    /// How often the reactor had been sent back to do all again.
    pub(crate) again: u32,
    /// How often the receipt was written; 0 if there is none.
    pub(crate) version: u64,
    /// The number of the lease under which it was written.
    pub(crate) lease: u64,
}

impl Receipt {
    pub(crate) fn of(item: &Item) -> Result<Self, ReactorError> {
        let item = Attributes(item);
        Ok(Self {
            done: item.place("done")?.unwrap_or_default(),
            began: item.place("began")?,
            n: item.number("n")?.unwrap_or(0),
            open: item.0.contains_key("open"),
            asking: item.text("asked"),
            again: item.number("again")?.unwrap_or(0),
            version: item.number("v")?.unwrap_or(0),
            lease: item.number("lease")?.unwrap_or(0),
        })
    }

    /// The lane's id in an item of the table, receipt or parked lane.
    pub(crate) fn id_of(item: &Item) -> Option<String> {
        Attributes(item).text(ID)
    }

    /// The receipt as an item, next after `before`.
    pub(crate) fn to_item(&self, key: Item) -> Item {
        let mut item = key;
        let mut set = |name: &str, value| item.insert(name.to_owned(), value);
        set("done", place(self.done));
        set("v", number(self.version));
        set("lease", number(self.lease));
        if let Some(began) = self.began {
            set("began", place(began));
            set("n", number(self.n));
        }
        if self.open {
            set("open", AttributeValue::Bool(true));
        }
        if let Some(asking) = self.asking.as_ref().filter(|_| self.open) {
            set("asked", text(asking));
        }
        if self.again > 0 {
            set("again", number(self.again));
        }
        item
    }
}

/// The request of a person for a parked lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpark {
    /// The event that failed is handled again, and then all later ones.
    Retry,
    /// The event that failed is skipped, for this reason. Later ones are handled.
    Skip(String),
}

/// A lane whose events wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedLane {
    /// Its name.
    pub lane: BoundaryId,
    /// Before the event that failed.
    pub from: Checkpoint,
    /// After it.
    pub place: Checkpoint,
    /// The id of the event that failed.
    pub event: String,
    /// Why it failed.
    pub cause: String,
    /// How often it was tried.
    pub tries: u32,
    /// When it failed last, in milliseconds since 1970.
    pub at_ms: u64,
    /// When it is tried again, in milliseconds since 1970. `None`: the lane is parked until a person asks.
    pub next_ms: Option<u64>,
    /// The request of a person, until the reactor has done it.
    pub asked: Option<Unpark>,
    /// The id of the request, so that a later one is not taken for it.
    pub(crate) asking: Option<String>,
}

impl ParkedLane {
    pub(crate) fn of(item: &Item) -> Result<Self, ReactorError> {
        let item = Attributes(item);
        let required = |name| item.text(name).ok_or_else(|| item.malformed(name));
        let asked = match item.text("ask").as_deref() {
            Some("retry") => Some(Unpark::Retry),
            Some("skip") => Some(Unpark::Skip(item.text("why").unwrap_or_default())),
            _ => None,
        };
        Ok(Self {
            lane: BoundaryId::stored(required("lane")?),
            from: item.place("from")?.unwrap_or_default(),
            place: item.place("place")?.ok_or_else(|| item.malformed("place"))?,
            event: required("event")?,
            cause: required("cause")?,
            tries: item.number("tries")?.unwrap_or(0),
            at_ms: item.number("at")?.unwrap_or(0),
            next_ms: item.number("next")?,
            asked,
            asking: item.text("asked"),
        })
    }

    /// The note that a person has skipped its event.
    pub(crate) fn skipped_item(&self, reactor: &str, why: &str, at_ms: u64) -> Item {
        let mut item = skipped_key(reactor, self.place);
        let texts = [
            ("lane", self.lane.as_str()),
            ("event", &self.event),
            ("cause", &self.cause),
            ("why", why),
        ];
        item.extend(texts.map(|(name, value)| (name.to_owned(), text(value))));
        item.insert("at".to_owned(), number(at_ms));
        item
    }

    pub(crate) fn to_item(&self, reactor: &str) -> Item {
        let mut item = parked_key(reactor, &self.lane);
        let mut set = |name: &str, value| item.insert(name.to_owned(), value);
        set("lane", text(self.lane.as_str()));
        set("from", place(self.from));
        set("place", place(self.place));
        set("event", text(&self.event));
        set("cause", text(&self.cause));
        set("tries", number(self.tries));
        set("at", number(self.at_ms));
        if let Some(next_ms) = self.next_ms {
            set("next", number(next_ms));
        }
        match &self.asked {
            None => {}
            Some(Unpark::Retry) => drop(set("ask", text("retry"))),
            Some(Unpark::Skip(why)) => {
                set("ask", text("skip"));
                set("why", text(why));
            }
        }
        if let Some(asking) = &self.asking {
            set("asked", text(asking));
        }
        item
    }
}

#[test]
fn the_short_form_of_a_long_name_is_the_name_of_no_lane() {
    let id = |lane: &str| {
        let key = lane_key("post", &BoundaryId::stored(lane));
        Attributes(&key).text(ID).unwrap_or_default()
    };
    let long = |letters| id(&format!("orderId:{}", "é".repeat(letters)));
    assert!(long(5_000).len() < 1_024);
    assert_ne!(long(500), long(501));
    assert_ne!(id(&long(500)[LANE.len()..]), long(500));
}
