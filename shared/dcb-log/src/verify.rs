//! `verify` recomputes every fence from the events. `repair` also mends the fences that differ. `gaps` looks for
//! missing slots at the same time.
//!
//! **Finding a difference while writers append.** Two things make it hard. A scan takes time: it misses events that
//! are committed in parts already scanned, and finds others that are committed in parts still to be scanned. And the
//! items of one transaction become visible one by one. Because of the second, each scan of the events waits for
//! [`VerifyOptions::settle`] after the fences were read. Then every event that these fences can count is visible.
//!
//! The *survey* reads the fences, waits, and scans the events. A fence that agrees exactly with the scan is right.
//! The scan comes after the fence, so it finds every event that was committed before the fence was read. A fence that
//! counts too few events therefore differs. An event that was committed later is later than the fence's `head`, so a
//! scan that finds it differs too. Every other fence is a suspect, even if it differs only because somebody appended
//! meanwhile.
//!
//! Suspects are *examined* together: their fences are read in transactions, then come the wait, a strong scan of the
//! events, and a second read of their fences. An examination is exact in two cases. *At rest*: the fence is the same
//! before and after. Every append raises `head`, so nothing was appended, and the fence must agree with the events.
//! *In order*: the head before the scan is not below any event that an earlier scan found. Every event that the
//! earlier scan did not find was committed after that scan began, and its append raised the head. So every event that
//! was committed before the fence was read is at or below its head. Under one fence, commit order is the order of
//! times, by the guard or by the slots of the partition. So every event that was committed later is above that head.
//! The events up to that head (the *cut*) are therefore exactly the events that the fence had to count. Its error,
//! `found - counted`, stays the same through every append, because an append adds the same number to both.
//!
//! An examination that is neither at rest nor in order **clears no suspect**. Assume that a scan finds one older
//! event that the fence does not count, and misses one that was appended meanwhile. Then it agrees with a fence that
//! counts one. Such an examination can only show that a count is below the number of events found, or the head below
//! one of them. Then a repair raises the head, which is always allowed, because writers then only mint later times.
//! Otherwise the suspect is undecided. In both cases the next examination is in order: the head was raised, or it was
//! not below any event found. So a second examination decides, unless another repair works on the same fence.
//!
//! A suspect is also undecided if transactions held its fence at every attempt, before or after the scan. It does not
//! stop the other suspects. A plain strong read would succeed, but during an append it may return the old fence
//! beside the new event. Two such reads would look like a fence at rest. The scan itself is as good as any other, so
//! the next examination compares the head with the newest event that it found.
//!
//! `tests/model` explores this beside writers and a second repair. It finds the lost update if an examination clears
//! a suspect too early, or if the survey does not wait.
//!
//! **Why no concurrent writer commits unchecked.** One conditional put mends a fence. It adds the error to the
//! current counts of the fence, and requires the `head` and the last repair (`repaired`) of that reading. An append
//! before the put has changed the head. Then the put fails, the fence is read again, and the error is the same. An
//! append after the put finds the right count. Both are single steps on one item, so there is nothing in between. A
//! decision that has seen all events conflicts before the put, or finds the right counts after it. A decision that
//! has seen fewer events conflicts after it. Each fence is mended by itself, so a writer's changes to other fences do
//! not matter. Another repair, or an earlier send of this one whose answer was lost, has changed `repaired`. Then the
//! put fails, and the fence is examined again or known to be mended. A put that arrives late fails in the same way.
//! So a repair can be interrupted and started again at any time, and two can run at once.
//!
//! **Events that can't be read** do not stop the check; the report names them. Type and tags suffice to file an
//! event, so an event with a broken payload still counts. If type and tags can't be read either, or the catalog does
//! not declare the type, nobody knows which fences count the event. Then no count of its type is compared, and no
//! fence's head is lowered.
//!
//! A count that is too high can only come from deleted events, and the log never deletes any. A warm function may
//! remember such an event, so restart the functions before you lower a count.
//!
//! **A new boundary** (a key that becomes cross-partition, or a type that is read as a composite): the new fences
//! count only the events that deployed writers have filed since. Earlier events lack the index's attribute or their
//! index items. `repair` adds both. It is complete when writers of the old version no longer run, because they file
//! without counting. Slices may condition on the boundary afterwards.
//!
//! **Cost.** The table is read once eventually and once strongly, for 1.5 read units for each 4 KB. If there are
//! suspects, it is read once more, for 1 unit. A table under write load always has some. A repair that mends
//! something reads the table again to check the result. Index items are read once more, strongly. Memory: about 1 KB
//! for each boundary. [`VerifyOptions::passes`] divides it, and multiplies the scans.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::pin::pin;

use futures::{Stream, TryStreamExt};
use ringfence_aws::Item;
use ringfence_core::{
    ACTIONS_MAX, BoundaryId, Catalog, Filing, FilingError, LogError, Name, NewEvent, chain,
    is_followed,
};

use crate::compare::{Difference, Fence, Found, Unfiled};
use crate::copied::Copied;
use crate::fence::{FENCE_ID, read_free};
use crate::gaps::{Slots, gaps};
use crate::item::{ID, POSITION, event_type, name, place_of, unloaded, whole};
use crate::log::DcbLog;
use crate::mend::mend;
use crate::read::decode_named;
use crate::report::{DcbReport, VerifyOptions, VerifyStage};
use crate::scan::Of;
use crate::unindexed::Unindexed;

/// How often suspects are examined. The second examination is in order at the latest, and the third sees the mended
/// fence. One more is for a repair that runs at the same time.
const EXAMINATIONS_MAX: usize = 4;

impl DcbLog {
    /// Compares every fence with the events, and the events with their indexes.
    ///
    /// # Errors
    /// A request fails permanently.
    pub async fn verify_fences(&self, options: &VerifyOptions<'_>) -> Result<DcbReport, LogError> {
        Check::new(self, options, false).run().await
    }

    /// As [`DcbLog::verify_fences`], and mends the differences. It adds missing index attributes to events and puts
    /// missing index items. It changes nothing else.
    ///
    /// # Errors
    /// As [`DcbLog::verify_fences`]. Everything mended until then stays mended.
    pub async fn repair_fences(&self, options: &VerifyOptions<'_>) -> Result<DcbReport, LogError> {
        Check::new(self, options, true).run().await
    }
}

type Fences = HashMap<BoundaryId, Fence>;

/// Boundaries whose fence seems to differ, each with the time of the newest event found.
type Suspects = BTreeMap<BoundaryId, Option<u64>>;

struct Check<'a> {
    log: &'a DcbLog,
    options: &'a VerifyOptions<'a>,
    repair: bool,
    report: DcbReport,
    unfiled: Unfiled,
    /// The slots that the survey found.
    slots: Slots,
    /// The copies that the survey found.
    copied: Copied,
}

impl<'a> Check<'a> {
    fn new(log: &'a DcbLog, options: &'a VerifyOptions<'a>, repair: bool) -> Self {
        let (report, unfiled, slots) = (DcbReport::default(), Unfiled::default(), Slots::default());
        Self { log, options, repair, report, unfiled, slots, copied: Copied::default() }
    }

    async fn run(mut self) -> Result<DcbReport, LogError> {
        for pass in 0..self.options.passes.max(1) {
            let suspects = self.survey(pass).await?;
            let suspect = suspects.keys().cloned().collect();
            self.examine(suspects).await?;
            let copied = std::mem::take(&mut self.copied);
            let [differ, mended] = copied.examine(self.log, self.repair, &suspect).await?;
            self.report.differences.extend(differ);
            self.report.mended.extend(mended);
            let torn = std::mem::take(&mut self.slots).torn();
            self.report.gaps.extend(gaps(self.log, self.options, torn).await?);
        }
        Ok(self.report)
    }

    /// Whether a pass handles this boundary.
    fn is_due(&self, boundary: &BoundaryId, pass: u64) -> bool {
        let mut hasher = DefaultHasher::new();
        boundary.hash(&mut hasher);
        hasher.finish() % self.options.passes.max(1) == pass
    }

    /// Reads the whole table.
    async fn survey(&mut self, pass: u64) -> Result<Suspects, LogError> {
        let before = self.fences(pass).await?;
        let found = self.survey_events(&before, pass).await?;
        let boundaries = before.keys().chain(found.keys().filter(|b| !before.contains_key(*b)));
        let (none, nothing) = (Fence::default(), Found::default());
        let suspect = |boundary: &BoundaryId| {
            let fence = before.get(boundary).unwrap_or(&none);
            let found = &found.get(boundary).unwrap_or(&nothing).all;
            let differs = fence.counts != found.counts || fence.head != found.head;
            differs.then(|| (boundary.clone(), found.head))
        };
        Ok(boundaries.filter_map(suspect).collect())
    }

    /// Examines the suspects until each is decided and, in a repair, mended.
    async fn examine(&mut self, mut suspects: Suspects) -> Result<(), LogError> {
        let mut first: BTreeMap<BoundaryId, Difference> = BTreeMap::new();
        // The last result of each suspect that is not right.
        let mut left: BTreeMap<BoundaryId, Difference> = BTreeMap::new();
        for examination in 1..=EXAMINATIONS_MAX {
            if suspects.is_empty() {
                break;
            }
            let judged = self.confirm(&suspects).await?;
            left.retain(|boundary, _| !suspects.contains_key(boundary));
            left.extend(judged.into_iter().map(|differs| (differs.boundary.clone(), differs)));
            for differs in left.values().filter(|differs| !differs.is_undecided()) {
                first.entry(differs.boundary.clone()).or_insert_with(|| differs.clone());
            }
            let again = left.values().filter(|differs| self.repair || differs.is_undecided());
            suspects = again.map(|d| (d.boundary.clone(), d.newest())).collect();
            if self.repair && examination < EXAMINATIONS_MAX {
                let differ = left.values().filter(|differs| !differs.is_undecided());
                for (differs, n) in differ.zip(1..) {
                    mend(self.log, differs).await?;
                    (self.options.progress)(VerifyStage::Mending, n);
                }
            }
        }
        first.retain(|boundary, _| !left.contains_key(boundary));
        self.report.differences.extend(left.into_values());
        if self.repair {
            self.report.mended.extend(first.into_values());
        }
        Ok(())
    }

    /// One examination of the suspects: their fences, their events, and their fences again.
    async fn confirm(&mut self, suspects: &Suspects) -> Result<Vec<Difference>, LogError> {
        let boundaries: Vec<_> = suspects.keys().cloned().collect();
        let before = self.fences_of(&boundaries).await?;
        let mut items = pin!(self.settled_events().await);
        let mut found = HashMap::new();
        let mut events = 0;
        while let Some(item) = items.try_next().await? {
            let Some(filed) = self.file(&item) else { continue };
            count(&mut found, &before, &filed, |boundary| suspects.contains_key(boundary));
            events += 1;
            (self.options.progress)(VerifyStage::Confirming, events);
        }
        let after = self.fences_of(&boundaries).await?;
        let nothing = Found::default();
        let judge = |(boundary, newest): (&BoundaryId, &Option<u64>)| {
            let found = found.get(boundary).unwrap_or(&nothing);
            let (Some(before), Some(after)) = (before.get(boundary), after.get(boundary)) else {
                return Some(Difference::undecided(boundary, found));
            };
            let ordered = before.head >= *newest;
            Difference::judge(boundary, before, after, found, ordered, &self.unfiled)
        };
        Ok(suspects.iter().filter_map(judge).collect())
    }

    /// Every event, read strongly. All events that the fences counted when they were read are visible.
    async fn settled_events(&self) -> impl Stream<Item = Result<Item, LogError>> + use<'a> {
        tokio::time::sleep(self.options.settle).await;
        self.log.scan_items(Of::EventsStrong)
    }

    async fn fences(&mut self, pass: u64) -> Result<Fences, LogError> {
        let mut fences = HashMap::new();
        let mut items = pin!(self.log.scan_items(Of::Fences));
        while let Some(item) = items.try_next().await? {
            let id = item.get(ID).and_then(|id| id.as_s().ok());
            let Some(id) = id.and_then(|id| id.strip_prefix(FENCE_ID)) else { continue };
            let boundary = BoundaryId::stored(id);
            if !self.is_due(&boundary, pass) {
                continue;
            }
            if whole(&item, POSITION) == Some(0) {
                fences.insert(boundary.clone(), Fence::of(Some(&item)));
                self.report.fences += 1;
                (self.options.progress)(VerifyStage::Fences, self.report.fences);
            }
            self.copied.add(self.log, &boundary, item);
        }
        Ok(fences)
    }

    /// Counts the events of every boundary of this pass. The first pass checks their indexes too.
    async fn survey_events(
        &mut self,
        before: &Fences,
        pass: u64,
    ) -> Result<HashMap<BoundaryId, Found>, LogError> {
        let mut found = HashMap::new();
        let mut unindexed = Unindexed::new(self.log, self.repair);
        let mut events = 0;
        let mut items = pin!(self.settled_events().await);
        let now_ms = self.log.clock.now_ms();
        while let Some(item) = items.try_next().await? {
            if let Some((partition, slot)) = place_of(&item)
                && self.is_due(&partition, pass)
            {
                self.slots.add(partition, slot);
            }
            let Some(filed) = self.file(&item) else { continue };
            count(&mut found, before, &filed, |boundary| self.is_due(boundary, pass));
            let partition = &filed.filing.partition;
            if filed.filing.fences.contains(partition) && self.is_due(partition, pass) {
                self.copied.want(partition, filed.copies);
            }
            events += 1;
            (self.options.progress)(VerifyStage::Events, events);
            if !is_followed(filed.at, now_ms) && self.report.ahead.len() < DcbReport::BROKEN_MAX {
                self.report.ahead.insert(name(&item), filed.at);
            }
            if pass == 0 && filed.is_whole {
                unindexed.event(&item, &filed.filing).await?;
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

    /// The boundaries under which the catalog files the event of `item`; `None` if they are not known. Notes an item
    /// that can't be decoded.
    fn file(&mut self, item: &Item) -> Option<Filed> {
        let catalog = &self.log.catalog;
        let error = match Filed::new(catalog, item.clone(), true) {
            Ok(filed) => return Some(filed),
            Err(error) => error,
        };
        self.report.note_broken(name(item), || causes(&error));
        let filed = Filed::new(catalog, unloaded(item), false).ok();
        if filed.is_none() {
            self.unfiled.add(event_type(item));
        }
        filed
    }

    /// The current fences of `boundaries`, without those that could not be read.
    async fn fences_of(&self, boundaries: &[BoundaryId]) -> Result<Fences, LogError> {
        let mut fences = HashMap::new();
        for chunk in boundaries.chunks(ACTIONS_MAX) {
            let items = read_free(self.log, chunk).await?.into_iter();
            fences.extend(items.map(|(boundary, item)| (boundary, Fence::of(item.as_ref()))));
        }
        Ok(fences)
    }
}

/// An event that a scan found, with its boundaries in the catalog.
struct Filed {
    event_type: Name,
    at: u64,
    filing: Filing,
    /// How many copies its type declares for the fence of its partition.
    copies: u16,
    /// Whether its payload can be read.
    is_whole: bool,
}

impl Filed {
    fn new(catalog: &Catalog, item: Item, is_whole: bool) -> Result<Self, LogError> {
        let event = decode_named(catalog, item)?;
        let schema = catalog.schema(&event.event_type);
        let schema = schema.ok_or(FilingError::UnknownType(event.event_type))?;
        let (event_type, copies) =
            (schema.name.clone(), if schema.fenced { schema.copies } else { 0 });
        let at = event.at;
        let event = NewEvent { event_type, tags: event.tags, data: event.data };
        let filing = catalog.filing(&event)?;
        Ok(Self { event_type: event.event_type, at, filing, copies, is_whole })
    }
}

/// Counts an event in its boundaries that are due.
fn count(
    found: &mut HashMap<BoundaryId, Found>,
    before: &Fences,
    event: &Filed,
    is_due: impl Fn(&BoundaryId) -> bool,
) {
    let none = Fence::default();
    for boundary in event.filing.fences.iter().filter(|boundary| is_due(boundary)) {
        let before = before.get(boundary).unwrap_or(&none);
        found.entry(boundary.clone()).or_default().add(&event.event_type, event.at, before);
    }
}

/// The messages of an error and its sources. They omit the item, which the report names.
fn causes(error: &LogError) -> String {
    match error {
        LogError::Undecodable { source, .. } => chain(&**source),
        error => chain(error),
    }
}
