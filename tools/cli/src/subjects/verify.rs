//! `ringfence subjects verify`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use futures::StreamExt;
use ringfence_core::personal::{Form, subject, values};
use ringfence_core::{SequencedEvent, rfc3339};
use ringfence_feed::{Checkpoint, Entry, Index, Until};
use ringfence_schemas::Shape;
use ringfence_subjects::KeyTable;
use serde_json::{Value, json};

use super::list::LastForgotten;
use crate::Lists;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::progress;
use crate::remark;
use crate::tables::{FeedTables, KeyFlags};

/// The number of events between two updates of the progress.
const PROGRESS_EVENTS: u64 = 1_000;
/// A report names at most this many of each kind.
const NAMED_MAX: usize = 100;

#[derive(Args)]
#[command(after_help = "\
Run it with --reapply after a restore of the table of keys, before any function starts. Such a table has the keys of the
people who were forgotten since.

It reads all events of the index, for half a read unit for each 4 KB of an event, and one read unit for each person. It
needs some hundred bytes of memory for each person. A type of events whose newest version is in clear is not in order. Older
versions, of the time before a field was personal, are only counted.

Examples:
  ringfence subjects verify --stack ringfence-prod
  ringfence subjects verify --reapply")]
pub(crate) struct Arguments {
    #[command(flatten)]
    feed: FeedTables,
    #[command(flatten)]
    keys: KeyFlags,
    /// Puts the fences that are missing again, so that the people are forgotten again.
    #[arg(long)]
    reapply: bool,
    #[command(flatten)]
    output: Output,
}

/// A version of a type: its context, its name, its number.
type VersionOf = (String, String, u32);

/// Events of a version with personal data in clear.
#[derive(Default)]
struct InClear {
    events: u64,
    /// The time of the last one, and its id.
    last: (u64, String),
    /// Whether the version is the newest of its type.
    is_newest: bool,
}

/// What the index has.
#[derive(Default)]
struct Found {
    events: u64,
    unreadable: u64,
    read_units: f64,
    forgotten: LastForgotten,
    in_clear: BTreeMap<VersionOf, InClear>,
    /// The subjects of sealed values, each with the number of the key.
    sealed: BTreeSet<(String, u64)>,
}

#[derive(Default)]
struct Report {
    events: u64,
    unreadable: u64,
    read_units: f64,
    forgotten: usize,
    unfenced: Vec<String>,
    is_reapplied: bool,
    /// The newest events first.
    in_clear: Vec<(VersionOf, InClear)>,
    lost: Vec<String>,
}

pub(crate) async fn verify(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { feed, keys, reapply, output } = arguments;
    let client = dynamo_client().await?;
    let keys = keys.table(&client)?;
    let found = Found::of(&feed.index(client).await?, lists).await?;
    let mut in_clear: Vec<_> = found.in_clear.into_iter().collect();
    in_clear.sort_by_key(|(_, in_clear)| Reverse(in_clear.last.0));
    let all = found.forgotten.standings(&keys).await?;
    let forgotten = all.len();
    let mut unfenced = Vec::new();
    for one in all.into_iter().filter(super::list::OneForgotten::is_unfenced) {
        if *reapply {
            keys.forget(&one.subject, one.at_ms, &one.why).await?;
        }
        unfenced.push(one.subject);
    }
    let report = Report {
        events: found.events,
        unreadable: found.unreadable,
        read_units: found.read_units + keys.meter().snapshot().total().read,
        forgotten,
        unfenced,
        is_reapplied: *reapply,
        in_clear,
        lost: lost(&found.sealed, &keys).await?,
    };
    Ok(output.end(&report, report.is_in_order()))
}

impl Found {
    async fn of(index: &Index, lists: &Lists) -> Result<Self> {
        let shapes = shapes(lists);
        let mut found = Self::default();
        let total = index.count(Checkpoint::START, index.end().await?).await?;
        remark!("{total} events are read, each for half a read unit for each 4 KB");
        let mut entries = index.read(Checkpoint::START, Until::Present);
        while let Some(entry) = entries.next().await {
            let (entry, why) = Entry::or_known(entry)?;
            found.events += 1;
            match why {
                Some(_) => found.unreadable += 1,
                None => found.add(entry.event, lists, &shapes),
            }
            if found.events.is_multiple_of(PROGRESS_EVENTS) {
                progress::show(format_args!("{} events read", found.events));
            }
        }
        found.read_units = index.usage().total().read;
        Ok(found)
    }

    fn add(&mut self, mut event: SequencedEvent, lists: &Lists, shapes: &Shapes) {
        self.forgotten.add(&event);
        let of = (event.context.clone(), event.event_type.clone());
        if let Some(shape) = shapes.get(&of)
            && let Ok(newest) = lists.newest(&event)
            && shape.is_in_clear(&newest.data)
        {
            let version = self.in_clear.entry((of.0, of.1, event.version)).or_default();
            version.events += 1;
            version.last = (event.at, event.id());
            version.is_newest = newest.stored.is_none();
        }
        let sealed = values(&mut event.data, Form::Sealed).into_iter();
        let sealed =
            sealed.filter_map(|value| Some((subject(value)?.to_owned(), value["k"].as_u64()?)));
        self.sealed.extend(sealed);
    }
}

/// The shapes of the newest versions, by context and type.
type Shapes = BTreeMap<(String, String), Shape>;

fn shapes(lists: &Lists) -> Shapes {
    let locks = (lists.locks)();
    let all = locks.into_iter().flat_map(|(context, lock)| {
        lock.events.into_iter().filter_map(move |(name, mut event)| {
            let (_, newest) = event.versions.pop_last()?;
            Some(((context.to_owned(), name), newest.shape))
        })
    });
    all.collect()
}

/// The subjects of whose keys one is missing, although nobody has destroyed it.
async fn lost(sealed: &BTreeSet<(String, u64)>, keys: &KeyTable) -> Result<Vec<String>> {
    let subjects = sealed.iter().map(|(subject, _)| subject.as_str()).collect();
    let standings = keys.standings(&subjects).await?;
    let is_lost = |(subject, number): &&(String, u64)| {
        standings.get(subject).is_none_or(|standing| standing.has_lost(*number))
    };
    let lost: BTreeSet<_> = sealed.iter().filter(is_lost).map(|(subject, _)| subject).collect();
    Ok(lost.into_iter().cloned().collect())
}

impl Report {
    fn is_in_order(&self) -> bool {
        (self.unfenced.is_empty() || self.is_reapplied)
            && self.lost.is_empty()
            && self.unreadable == 0
            && !self.in_clear.iter().any(|(_, in_clear)| in_clear.is_newest)
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let more = |f: &mut Formatter<'_>, what: &str, all: usize| match all > NAMED_MAX {
            true => write_line!(f, "{what} and {} more", all - NAMED_MAX),
            false => Ok(()),
        };
        for subject in self.unfenced.iter().take(NAMED_MAX) {
            match self.is_reapplied {
                true => {
                    write_line!(f, "fenced   {subject}: the fence was missing, and is there again")?
                }
                false => write_line!(
                    f,
                    "readable {subject}: was forgotten, and has no fence; --reapply puts it again"
                )?,
            }
        }
        more(f, "readable", self.unfenced.len())?;
        for subject in self.lost.iter().take(NAMED_MAX) {
            write_line!(
                f,
                "lost     {subject}: has values whose key is missing; a restore to a later time may have it"
            )?;
        }
        more(f, "lost    ", self.lost.len())?;
        for ((context, name, version), in_clear) in self.in_clear.iter().take(NAMED_MAX) {
            let InClear { events, last: (at, id), is_newest } = in_clear;
            let (time, word) = (rfc3339(*at), if *is_newest { "in clear" } else { "older   " });
            write_line!(
                f,
                "{word} {name} of {context}, version {version}: {events} events have personal data in clear, the last \
                 is {id}, of {time}"
            )?;
        }
        more(f, "in clear", self.in_clear.len())?;
        let Self { events, unreadable, read_units, forgotten, .. } = self;
        let end = if self.is_in_order() { "all in order" } else { "not in order" };
        write_line!(
            f,
            "{events} events, {unreadable} can't be decoded, {forgotten} people were forgotten, {read_units} read units: {end}"
        )
    }
}

serialize_as!(Report, |report| {
    let Report {
        events,
        unreadable,
        read_units,
        forgotten,
        unfenced,
        is_reapplied,
        in_clear,
        lost,
    } = report;
    let in_clear = in_clear.iter().map(|((context, name, version), in_clear)| {
        let InClear { events, last: (at, id), is_newest } = in_clear;
        json!({
            "context": context, "type": name, "version": version, "isNewest": is_newest,
            "events": events, "last": id, "lastAt": rfc3339(*at),
        })
    });
    json!({
        "events": events, "unreadable": unreadable, "readUnits": read_units, "forgotten": forgotten,
        "unfenced": unfenced, "isReapplied": is_reapplied, "lost": lost,
        "inClear": in_clear.collect::<Value>(), "isInOrder": report.is_in_order(),
    })
});
