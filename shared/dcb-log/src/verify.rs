//! `verify` recomputes every fence from the events; `repair` mends those that differ.
//!
//! **How a difference is found on a table that is written to.** The fences are scanned first, then
//! the events, strongly, then the fences that do not agree are read again, in a transaction. Under
//! one fence commit order is position order: a fence that counts `n` and says `head` counts
//! exactly the events that are not after `head`, whatever is appended later. So the events are
//! *cut* at the head that the fence had before the scan. What does not agree is a suspect. Suspects
//! are examined again, together: their fences in a transaction, a wait of [`Options::settle`], a
//! strong scan of the events, the fences in a transaction. The wait is for what a transactional
//! read may show before a scan does: the items of one transaction become visible one by one.
//!
//! What this second examination says is exact in two cases. *At rest*: the fence is the same before
//! and after, so nothing was appended (every append changes the head to a position never used
//! before), and the fence has to say what the events say. *In order*: the head before the scan is
//! not below any event that an earlier scan found, so it can't have been set back; the cut is right
//! and the fence's error, `found - counted`, is the same before and after every append, because an
//! append adds as much to the one as to the other. In any other case a difference is reported and
//! only the head is raised, which is always allowed: it makes writers mint later. The next
//! examination of the fence is in order.
//!
//! **Why no concurrent writer commits unchecked.** A fence is mended by one conditional put. It
//! adds the error to the counts that the fence has now, and requires the `head` and the last repair
//! (`repaired`) of that reading. An append before it has changed the head: the put fails, the fence
//! is read again, the error is the same. An append after it finds the right count. There is no
//! between: both are single steps on one item. A decision that has seen all events conflicts before
//! the put, or finds the right counts after it; one that has seen fewer conflicts after it. What a
//! writer does to other fences is of no concern, for a fence is mended by itself. Another repair,
//! or an earlier send of this one whose answer was lost, has changed `repaired`: the put fails, and
//! the fence is examined again or known to be mended. A put that arrives late fails in the same way.
//! So a repair can be broken off and started again at any time, and can run twice at once.
//!
//! A count that is too high can only come from events that were removed, which the log never does.
//! A warm function may remember such an event, so start the functions anew before lowering a count.
//!
//! **A new boundary** (a key that becomes cross-partition, a type that is read as a composite): the
//! fences that deployed writers have begun count only what they filed, and the events before lack
//! the index's attribute or their index items. `repair` adds both. It is right as soon as no writer of the old version
//! runs, for such a one files without counting; slices may condition on the boundary afterwards.
//!
//! **Cost.** The table is read once eventually and once strongly (1.5 read units for each 4 KB), and
//! once more when there are suspects; index items are read once more, strongly. Memory: about 1 KB for each boundary; with
//! [`Options::passes`] it is divided by as many as the scans are multiplied.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::pin::pin;
use std::time::Duration;

use futures::TryStreamExt;
use ringfence::{BoundaryId, Filing, LogError, NewEvent, Position};
use ringfence_dynamo::{Item, Retry};

use crate::compare::{Counts, Difference, Found};
use crate::fence::{FENCE_ID, snapshot};
use crate::item::ID;
use crate::limits::TRANSACTION_ACTIONS_MAX;
use crate::log::{DcbLog, failed};
use crate::mend::mend;
use crate::read::decode_named;
use crate::scan::Of;
use crate::unindexed::Unindexed;

/// How often suspects are examined: in order at the second time at the latest, mended at the third,
/// and once more for a repair that ran at the same time.
const EXAMINATIONS_MAX: usize = 4;

/// How to go through the table.
pub struct Options<'a> {
    /// How long after a transaction took effect all of its items are in strong reads. DynamoDB
    /// names no bound; it is a matter of milliseconds.
    pub settle: Duration,
    /// How many times the table is gone through, each time for a part of the boundaries.
    pub passes: u64,
    /// Is told how many items of a stage are done, after each.
    pub progress: &'a (dyn Fn(Stage, u64) + Send + Sync),
}

impl Default for Options<'_> {
    /// Five seconds to settle, one pass, no progress.
    fn default() -> Self {
        Self { settle: Duration::from_secs(5), passes: 1, progress: &|_, _| {} }
    }
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Fences are read.
    Fences,
    /// Events are counted.
    Events,
    /// Events are counted once more, for the fences that seem to differ.
    Confirming,
    /// Fences are mended.
    Mending,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Events that were counted.
    pub events: u64,
    /// Fences that were compared.
    pub fences: u64,
    /// By index, how many of its entries are lacking: attributes of events (`tag_<key>`,
    /// `tag_composite`) and index items (`tag#<key>`, `tag#$type`). What lacks can't be read by it.
    pub unindexed: BTreeMap<String, u64>,
    /// Fences that differ.
    pub differences: Vec<Difference>,
    /// By index, how many entries were lacking and are there now.
    pub indexed: BTreeMap<String, u64>,
    /// Fences that differed and are right now.
    pub mended: Vec<Difference>,
}

impl Report {
    /// Whether nothing is wrong any more.
    #[must_use]
    pub fn in_order(&self) -> bool {
        self.differences.is_empty() && self.unindexed.is_empty()
    }
}

impl DcbLog {
    /// Compares every fence with the events, and the events with the indexes that they are in.
    ///
    /// # Errors
    /// A request that fails for good, an event that can't be decoded or whose type the catalog does
    /// not declare.
    pub async fn verify_fences(&self, options: &Options<'_>) -> Result<Report, LogError> {
        Check { log: self, options, repair: false, report: Report::default() }.run().await
    }

    /// The same, and mends what differs. No event is changed but for the attributes of
    /// indexes; index items that lack are put.
    ///
    /// # Errors
    /// As [`DcbLog::verify_fences`]; what was mended until then stays mended.
    pub async fn repair_fences(&self, options: &Options<'_>) -> Result<Report, LogError> {
        Check { log: self, options, repair: true, report: Report::default() }.run().await
    }
}

type Fences = HashMap<BoundaryId, Counts>;

/// Boundaries whose fence seems to differ, and the newest event that was found.
type Suspects = BTreeMap<BoundaryId, Option<Position>>;

struct Check<'a> {
    log: &'a DcbLog,
    options: &'a Options<'a>,
    repair: bool,
    report: Report,
}

impl Check<'_> {
    async fn run(mut self) -> Result<Report, LogError> {
        for pass in 0..self.options.passes.max(1) {
            let suspects = self.survey(pass).await?;
            self.examine(suspects).await?;
        }
        Ok(self.report)
    }

    /// Whether a boundary's turn is in this pass.
    fn is_due(&self, boundary: &BoundaryId, pass: u64) -> bool {
        let mut hasher = DefaultHasher::new();
        boundary.hash(&mut hasher);
        hasher.finish() % self.options.passes.max(1) == pass
    }

    /// Goes through the whole table.
    async fn survey(&mut self, pass: u64) -> Result<Suspects, LogError> {
        let before = self.fences(pass).await?;
        let found = self.survey_events(&before, pass).await?;
        let boundaries = before.keys().chain(found.keys().filter(|b| !before.contains_key(*b)));
        let (none, nothing) = (Counts::default(), Found::default());
        let differs = |boundary: &&BoundaryId| {
            let fence = before.get(*boundary).unwrap_or(&none);
            let found = &found.get(*boundary).unwrap_or(&nothing).all;
            fence.types != found.types || fence.head != found.head
        };
        let differing: Vec<_> = boundaries.filter(differs).cloned().collect();
        let judged = self.judge(&differing, &before, &found, |_| None).await?;
        let suspect = |differs: Difference| (differs.boundary.clone(), differs.newest().cloned());
        Ok(judged.into_iter().map(suspect).collect())
    }

    /// Examines the suspects until none is left or, without repair, once.
    async fn examine(&mut self, mut suspects: Suspects) -> Result<(), LogError> {
        let mut first: BTreeMap<BoundaryId, Difference> = BTreeMap::new();
        let mut left = Vec::new();
        for examination in 1..=EXAMINATIONS_MAX {
            if suspects.is_empty() {
                break;
            }
            left = self.confirm(&suspects).await?;
            for differs in &left {
                first.entry(differs.boundary.clone()).or_insert_with(|| differs.clone());
            }
            if !self.repair || examination == EXAMINATIONS_MAX {
                break;
            }
            for (differs, n) in left.iter().zip(1..) {
                mend(self.log, differs).await?;
                (self.options.progress)(Stage::Mending, n);
            }
            let suspect =
                |differs: &Difference| (differs.boundary.clone(), differs.newest().cloned());
            suspects = left.iter().map(suspect).collect();
        }
        for differs in &left {
            first.remove(&differs.boundary);
        }
        self.report.differences.extend(left);
        if self.repair {
            self.report.mended.extend(first.into_values());
        }
        Ok(())
    }

    /// One examination of the suspects: their fences, their events, their fences.
    async fn confirm(&self, suspects: &Suspects) -> Result<Vec<Difference>, LogError> {
        let boundaries: Vec<_> = suspects.keys().cloned().collect();
        let before = self.snapshots(&boundaries).await?;
        tokio::time::sleep(self.options.settle).await;
        let mut found = HashMap::new();
        let mut events = 0;
        let mut items = pin!(self.log.scan_items(Of::EventsStrong));
        while let Some(item) = items.try_next().await? {
            let (event, position, filing) = self.filed(item)?;
            count(&mut found, &before, event.event_type, &position, &filing, |boundary| {
                suspects.contains_key(boundary)
            });
            events += 1;
            (self.options.progress)(Stage::Confirming, events);
        }
        self.judge(&boundaries, &before, &found, |boundary| suspects.get(boundary)).await
    }

    /// Judges `boundaries`, whose fences are read now. `newest` is what an earlier scan found.
    async fn judge<'s>(
        &self,
        boundaries: &[BoundaryId],
        before: &Fences,
        found: &HashMap<BoundaryId, Found>,
        newest: impl Fn(&BoundaryId) -> Option<&'s Option<Position>>,
    ) -> Result<Vec<Difference>, LogError> {
        let after = self.snapshots(boundaries).await?;
        let (none, nothing) = (Counts::default(), Found::default());
        let judge = |boundary| {
            let before = before.get(boundary).unwrap_or(&none);
            let after = after.get(boundary).unwrap_or(&none);
            let ordered = newest(boundary).is_some_and(|newest| before.head >= *newest);
            let found = found.get(boundary).unwrap_or(&nothing);
            Difference::judge(boundary, before, after, found, ordered)
        };
        Ok(boundaries.iter().filter_map(judge).collect())
    }

    async fn fences(&mut self, pass: u64) -> Result<Fences, LogError> {
        let mut fences = HashMap::new();
        let mut items = pin!(self.log.scan_items(Of::Fences));
        while let Some(item) = items.try_next().await? {
            let id = item.get(ID).and_then(|id| id.as_s().ok());
            let Some(id) = id.and_then(|id| id.strip_prefix(FENCE_ID)) else { continue };
            let boundary = BoundaryId::stored(id);
            if self.is_due(&boundary, pass) {
                fences.insert(boundary, Counts::of(Some(&item)));
                self.report.fences += 1;
                (self.options.progress)(Stage::Fences, self.report.fences);
            }
        }
        Ok(fences)
    }

    /// Counts the events of every boundary of this pass. The first pass looks at their indexes too.
    async fn survey_events(
        &mut self,
        before: &Fences,
        pass: u64,
    ) -> Result<HashMap<BoundaryId, Found>, LogError> {
        let mut found = HashMap::new();
        let mut unindexed = Unindexed::new(self.log, self.repair);
        let mut events = 0;
        let mut items = pin!(self.log.scan_items(Of::EventsStrong));
        while let Some(item) = items.try_next().await? {
            let (event, position, filing) = self.filed(item.clone())?;
            count(&mut found, before, event.event_type, &position, &filing, |boundary| {
                self.is_due(boundary, pass)
            });
            events += 1;
            (self.options.progress)(Stage::Events, events);
            if pass == 0 {
                unindexed.event(&item, &filing).await?;
            }
        }
        if pass == 0 {
            let lacking = unindexed.end().await?;
            let report = &mut self.report;
            *(if self.repair { &mut report.indexed } else { &mut report.unindexed }) = lacking;
        }
        self.report.events = events;
        Ok(found)
    }

    /// An event and where the catalog files it.
    fn filed(&self, item: Item) -> Result<(NewEvent, Position, Filing), LogError> {
        let catalog = &self.log.catalog;
        let event = decode_named(catalog, item)?;
        let schema = catalog.schema(&event.event_type);
        let unknown = || ringfence::FilingError::UnknownType(event.event_type.clone());
        let event_type = schema.ok_or_else(unknown)?.name;
        let position = event.position;
        let event = NewEvent { event_type, tags: event.tags, data: event.data };
        let filing = catalog.filing(&event)?;
        Ok((event, position, filing))
    }

    /// The fences of `boundaries` now.
    async fn snapshots(&self, boundaries: &[BoundaryId]) -> Result<Fences, LogError> {
        let mut fences = HashMap::new();
        for chunk in boundaries.chunks(TRANSACTION_ACTIONS_MAX) {
            let items = Retry::default().run(|| snapshot(self.log, chunk.iter())).await;
            let items = items.map_err(|gave_up| failed("reading fences", gave_up))?;
            let counts = items.iter().map(|item| Counts::of(item.as_ref()));
            fences.extend(chunk.iter().cloned().zip(counts));
        }
        Ok(fences)
    }
}

/// Counts an event in those of its boundaries that are due.
fn count(
    found: &mut HashMap<BoundaryId, Found>,
    before: &Fences,
    event_type: &str,
    position: &Position,
    filing: &Filing,
    is_due: impl Fn(&BoundaryId) -> bool,
) {
    let none = Counts::default();
    for boundary in filing.boundaries.iter().filter(|boundary| is_due(boundary)) {
        let before = before.get(boundary).unwrap_or(&none);
        found.entry(boundary.clone()).or_default().add(event_type, position, before);
    }
}
