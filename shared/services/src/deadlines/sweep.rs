//! A sweep: sends each command whose time has come.
//!
//! A command that takes effect leaves its row to project-views, which removes it when the command's event arrives. A
//! row whose command cleared nothing stays. The sweep notes it in another item, because rows follow from events alone,
//! and sends the command again after a minute, after two more, after four, and so on, up to an hour. So failed commands
//! stay in the list of due rows, and no row holds up another one.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use futures::stream::{FuturesUnordered, TryStreamExt};
use ringfence_aws::Clock;
use ringfence_lambda::{LOGGED_BYTES_MAX, bounded, chain, has_time};
use ringfence_views::{DueNote, DueReader, Generation, ViewError};
use serde_json::Value;
use tokio::select;
use tokio::sync::{AcquireError, OnceCell, Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

use crate::deadlines::list::Opened;

/// Commands that are carried out at once. Each due always has room for one, so a slow due holds up no other.
const COMMANDS_AT_ONCE: usize = 16;
/// How far a due with `LOOKS_AHEAD` looks, in milliseconds: until the next sweep.
const AHEAD_MS: u64 = 60_000;
/// The first pause after a command that cleared nothing, in milliseconds; each further one is twice as long.
const PAUSE_MS: u64 = 60_000;
/// The longest pause, in milliseconds.
const PAUSE_MAX_MS: u64 = 60 * 60_000;
/// How many failures a run names.
const CAUSES_MAX: usize = 10;

/// A sweep of the stack's dues.
pub struct Sweep {
    pub(crate) reader: DueReader,
    pub(crate) clock: Clock,
    pub(crate) dues: Vec<Opened>,
    /// Whether a row is left alone until its pause is over.
    pub(crate) keeps_pauses: bool,
}

/// The result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many commands took effect.
    pub fired: u64,
    /// How many commands cleared nothing: they were rejected, had nothing to change, or failed.
    pub left: u64,
    /// How many rows were not tried, because their pause is not over.
    pub paused: u64,
    /// How late the earliest row is, in milliseconds.
    pub lag_ms: u64,
    /// Why rows were left: some causes.
    pub causes: Vec<String>,
    /// The tables that could not be read or written, with the causes.
    pub failures: Vec<String>,
    /// Whether the time ended before the last row.
    pub unfinished: bool,
}

/// The sweep of one due.
struct OfDue<'a> {
    sweep: &'a Sweep,
    due: &'a Opened,
    /// The generation whose rows count.
    live: Generation,
    /// Rows that are due up to this time are taken, in milliseconds since 1970.
    until_ms: u64,
    /// When the sweep ends, in milliseconds since 1970 by the machine's clock.
    end_ms: u64,
    room: Room<'a>,
    swept: &'a RefCell<Swept>,
}

/// The room that a due has for its commands: one place of its own, and the places that all dues share.
struct Room<'a> {
    own: Semaphore,
    shared: &'a Semaphore,
}

impl<'a> Room<'a> {
    fn of_due(shared: &'a Semaphore) -> Self {
        Self { own: Semaphore::new(1), shared }
    }

    /// Waits for room for one more command.
    async fn enter(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        select! {
            biased;
            permit = self.own.acquire() => permit,
            permit = self.shared.acquire() => permit,
        }
    }
}

impl Sweep {
    /// The same, without pauses after commands that cleared nothing: it is for a person who may have mended the cause.
    #[must_use]
    pub fn without_pauses(self) -> Self {
        Self { keeps_pauses: false, ..self }
    }

    /// Sends the commands that are due, until this time is over.
    pub async fn all(&self, time: Duration) -> Swept {
        let swept = &RefCell::new(Swept::default());
        let shared = &Semaphore::new(COMMANDS_AT_ONCE.saturating_sub(self.dues.len()));
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let end_ms = self.clock.machine_ms().saturating_add(time_ms);
        let dues = self.dues.iter().map(async |due| {
            if let Err(error) = self.due(due, Room::of_due(shared), end_ms, swept).await {
                let (name, why) = (due.definition.name, chain(&error));
                swept.borrow_mut().failures.push(format!("{name}: {why}"));
            }
        });
        // A command that is cut off has a key, so the next sweep finds its result.
        let is_over = timeout(time, join_all(dues)).await.is_err();
        let swept = swept.take();
        Swept { unfinished: swept.unfinished || is_over, ..swept }
    }

    async fn due(
        &self,
        due: &Opened,
        room: Room<'_>,
        end_ms: u64,
        swept: &RefCell<Swept>,
    ) -> Result<(), ViewError> {
        let Some(live) = self.reader.live(&due.definition).await? else { return Ok(()) };
        let until_ms = self.clock.now_ms() + if due.looks_ahead { AHEAD_MS } else { 0 };
        OfDue { sweep: self, due, live, until_ms, end_ms, room, swept }.shards().await
    }
}

impl OfDue<'_> {
    /// All rows. The shards do not wait for one another: each may have a row that is ahead.
    async fn shards(&self) -> Result<(), ViewError> {
        let notes = OnceCell::new();
        let seen =
            try_join_all((0..self.live.shards).map(|shard| self.shard(shard, &notes))).await?;
        let seen: BTreeSet<_> = seen.into_iter().flatten().collect();
        // The row of such a note was cleared, or its time was moved.
        let notes = notes.into_inner().unwrap_or_default().into_iter();
        for (id, note) in notes.filter(|(id, _)| !seen.contains(id)) {
            self.sweep.reader.forget(&self.due.definition, &id, &note).await?;
        }
        Ok(())
    }

    /// The rows of a shard, a page at a time. The notes are read once there is a row. Returns the ids of the rows.
    async fn shard(
        &self,
        shard: u32,
        notes: &OnceCell<BTreeMap<String, DueNote>>,
    ) -> Result<Vec<String>, ViewError> {
        let Self { sweep: Sweep { reader, clock, .. }, due, live, until_ms, .. } = *self;
        let now_ms = clock.now_ms();
        let (mut place, mut seen) = (None, Vec::new());
        loop {
            let page = reader.page(&due.definition, live, shard, until_ms, place).await?;
            if let Some((first, _)) = page.rows.first() {
                let late_ms = now_ms.saturating_sub(*first);
                self.swept.borrow_mut().note_lag(late_ms);
                let notes = notes.get_or_try_init(|| reader.notes(&due.definition)).await?;
                self.page(&page.rows, notes).await?;
                seen.extend(page.rows.into_iter().map(|(_, id)| id));
            }
            place = page.next;
            if place.is_none() {
                return Ok(seen);
            }
        }
    }

    async fn page(
        &self,
        page: &[(u64, String)],
        notes: &BTreeMap<String, DueNote>,
    ) -> Result<(), ViewError> {
        let Self { sweep: Sweep { reader, clock, .. }, due, live, until_ms, .. } = *self;
        let ids: BTreeSet<&str> = page.iter().map(|(_, id)| id.as_str()).collect();
        let mut rows = reader.rows(&due.definition, live, &ids).await?;
        let sent = FuturesUnordered::new();
        for (_, id) in page {
            let Some(row) = rows.remove(id) else { continue };
            // The index may show an earlier time of the row.
            let Some(at_ms) = row["due"].as_u64().filter(|at| *at <= until_ms) else { continue };
            let noted = notes.get(id);
            // If another event has set the row since, its command is another one.
            let note = noted.filter(|note| row["cause"] == *note.cause);
            if self.sweep.keeps_pauses && note.is_some_and(|note| note.next_ms > clock.now_ms()) {
                self.swept.borrow_mut().paused += 1;
            } else {
                let tries = note.map_or(0, |note| note.tries);
                sent.push(self.row(id, at_ms, row, noted, tries));
            }
        }
        sent.try_collect().await
    }

    /// Sends the command of a row when its time has come. `tries`: how often it was sent before. The note on the row
    /// may be about an earlier command.
    async fn row(
        &self,
        id: &str,
        at_ms: u64,
        row: Value,
        noted: Option<&DueNote>,
        tries: u32,
    ) -> Result<(), ViewError> {
        let Self { sweep: Sweep { reader, clock, .. }, due, .. } = *self;
        let ahead = Duration::from_millis(at_ms.saturating_sub(clock.now_ms()));
        if !ahead.is_zero() {
            sleep(ahead).await;
        }
        let cause = row["cause"].as_str().unwrap_or_default().to_owned();
        let fired = {
            let _room = self.room.enter().await;
            if !has_time(clock.machine_ms(), self.end_ms) {
                self.swept.borrow_mut().unfinished = true;
                return Ok(());
            }
            due.on.fire(id, row).await
        };
        let Err(why) = fired else {
            self.swept.borrow_mut().fired += 1;
            return match noted {
                Some(note) => reader.forget(&due.definition, id, note).await,
                None => Ok(()),
            };
        };
        let why = bounded(&why, LOGGED_BYTES_MAX);
        self.swept.borrow_mut().note_left(format!("{} {id}: {why}", due.definition.name));
        let tries = tries + 1;
        let next_ms = clock.now_ms() + pause_ms(tries);
        let note = DueNote { cause, tries, next_ms, why };
        reader.note(&due.definition, id, noted, &note).await
    }
}

impl Swept {
    fn note_lag(&mut self, late_ms: u64) {
        self.lag_ms = self.lag_ms.max(late_ms);
    }

    fn note_left(&mut self, cause: String) {
        self.left += 1;
        if self.causes.len() < CAUSES_MAX {
            self.causes.push(cause);
        }
    }
}

/// The pause after this many commands that cleared nothing.
fn pause_ms(tries: u32) -> u64 {
    2_u64.saturating_pow(tries - 1).saturating_mul(PAUSE_MS).min(PAUSE_MAX_MS)
}

#[test]
fn pauses_double_up_to_an_hour() {
    let minutes: Vec<_> = [1, 2, 3, 6, 7, 100].map(|tries| pause_ms(tries) / 60_000).to_vec();
    assert_eq!(minutes, [1, 2, 4, 32, 60, 60]);
}

#[test]
fn the_commands_of_a_due_leave_room_for_one_of_each_other() {
    use futures::FutureExt;

    let shared = Semaphore::new(2);
    let rooms = [Room::of_due(&shared), Room::of_due(&shared)];
    let enter = |due: &'_ Room<'_>| due.enter().now_or_never().map(|room| room.unwrap().forget());
    let slow: Vec<_> = (0..4).map(|_| enter(&rooms[0])).collect();
    assert_eq!(slow, [Some(()), Some(()), Some(()), None]);
    assert_eq!([enter(&rooms[1]), enter(&rooms[1])], [Some(()), None]);
}
