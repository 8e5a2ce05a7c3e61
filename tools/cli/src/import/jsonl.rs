//! `ringfence import --from jsonl`: puts the events of an export into the logs, each in its place.
//!
//! First it reads and checks every line, and compares each partition with its log. It writes only if all of that is in
//! order. Then it reads the lines again, in the order of their times. Each boundary got its events in that order, so
//! every event can keep its time. Only the place of each line stays in memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use ringfence_core::{LogKind, SequencedEvent, rfc3339};
use ringfence_feed::Partition;
use sha2::{Digest, Sha256};

use super::arguments::Arguments;
use super::checked::checked;
use super::logs::{Found, Put, Writable};
use super::report::Report;
use super::there::There;
use crate::Lists;
use crate::export::folder::{Folder, Segment};
use crate::export::subject::Form;
use crate::line::event_of;
use crate::progress;

/// The number of lines between two updates of the progress.
const PROGRESS_LINES: u64 = 1_000;
/// This many partitions are compared at once.
const PARTITIONS: usize = 32;
/// The longest line, in bytes: an event has at most 400 KB in its table, and the body of a document unpacks to at most 16 MB.
const LINE_BYTES_MAX: u64 = 64 * 1_024 * 1_024;
/// Editors of some systems write it at the beginning of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// This many events are loaded at once. Those that share no boundary are written in parallel.
const EVENTS: usize = 64;

/// A file of lines.
struct Source {
    path: PathBuf,
    /// Its entry in the list of the export.
    segment: Option<Segment>,
}

/// Where a line is, and when its event comes.
struct Line {
    /// The time of the event, or of the event before it in its partition if that is later.
    order: u64,
    source: usize,
    offset: u64,
    bytes: usize,
    /// The index of its partition, and of the event in the partition.
    partition: usize,
    nth: usize,
}

/// A partition, as the lines have it.
struct Lane {
    partition: Partition,
    /// The slot of its first event.
    first: u64,
    /// Its events, in order.
    events: Vec<There>,
    order: u64,
    /// How many of them are in its log or were pruned from it.
    before: usize,
    /// How many of these were pruned.
    gone: usize,
    /// The time of the last event in its log.
    last_at: u64,
    /// Whether an export wrote it. Otherwise anybody may have written the lines.
    is_exported: bool,
}

/// All lines.
#[derive(Default)]
struct Lines {
    lines: Vec<Line>,
    lanes: Vec<Lane>,
    by_partition: HashMap<Partition, usize>,
}

/// Imports the lines of a file, or of the files of an export.
pub(super) async fn import(arguments: &Arguments, lists: &Lists) -> Result<Report> {
    let sources = sources(Path::new(&arguments.source))?;
    let logs = Writable::of(arguments, lists).await?;
    let (mut lines, mut report) = (Lines::default(), Report::default());
    for (n, source) in sources.iter().enumerate() {
        lines.read(n, source, &logs, lists, &mut report)?;
    }
    progress::clear();
    if report.broken.is_empty() {
        lines.compare(&logs, &mut report).await?;
    }
    let sum = |of: fn(&Lane) -> usize| lines.lanes.iter().map(of).sum::<usize>() as u64;
    report.gone = sum(|lane| lane.gone);
    report.read -= report.gone;
    report.imports.before = sum(|lane| lane.before - lane.gone);
    if report.broken.is_empty() && !arguments.dry_run {
        let written = lines.write(&sources, &logs, &mut report).await;
        written.with_context(|| {
            format!("broken off after {}; the same command goes on with it", report.imports)
        })?;
    }
    report.units = Some(logs.units());
    Ok(report)
}

/// The files of an export, or the one file.
fn sources(path: &Path) -> Result<Vec<Source>> {
    if path.is_file() {
        return Ok(vec![Source { path: path.to_owned(), segment: None }]);
    }
    let folder = Folder::read(path)?.with_context(|| {
        format!("{} is neither a file nor the folder of an export", path.display())
    })?;
    ensure!(
        folder.subject.form == Form::Jsonl,
        "{} has an export to {}, and import reads jsonl",
        path.display(),
        folder.subject.form.ending()
    );
    let source =
        |segment: &Segment| Source { path: folder.file(segment), segment: Some(segment.clone()) };
    Ok(folder.segments.iter().map(source).collect())
}

impl Source {
    fn open(&self) -> Result<BufReader<File>> {
        let file = File::open(&self.path);
        Ok(BufReader::new(file.with_context(|| format!("opening {}", self.path.display()))?))
    }

    /// Names a line for a person.
    fn line(&self, number: u64) -> String {
        let file = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        format!("{}:{number}", file.unwrap_or_default())
    }
}

impl Lines {
    /// Reads and checks the lines of a file.
    fn read(
        &mut self,
        n: usize,
        source: &Source,
        logs: &Writable<'_>,
        lists: &Lists,
        report: &mut Report,
    ) -> Result<()> {
        let reading = || format!("reading {}", source.path.display());
        let mut file = source.open()?;
        let (mut hash, mut offset, mut number) = (Sha256::new(), 0, 0);
        let (mut bytes, is_exported) = (Vec::new(), source.segment.is_some());
        loop {
            bytes.clear();
            let mut line = file.by_ref().take(LINE_BYTES_MAX);
            if line.read_until(b'\n', &mut bytes).with_context(reading)? == 0 {
                break;
            }
            ensure!(
                (bytes.len() as u64) < LINE_BYTES_MAX,
                "{}: the line has more than {LINE_BYTES_MAX} bytes, so it is no event; nothing is imported",
                source.line(number + 1)
            );
            number += 1;
            hash.update(&bytes);
            let mark = if number == 1 && bytes.starts_with(BYTE_ORDER_MARK) {
                BYTE_ORDER_MARK.len()
            } else {
                0
            };
            let line = &bytes[mark..];
            let place = (n, offset + mark as u64, line.len());
            offset += bytes.len() as u64;
            if line.trim_ascii().is_empty() && file.fill_buf().with_context(reading)?.is_empty() {
                // An editor has added an empty line at the end.
                break;
            }
            report.read += 1;
            let checked = checked(line, logs, lists);
            if let Err(cause) = checked.and_then(|event| self.add(&event, place, is_exported)) {
                report.refuse(&cause, source.line(number));
            }
            if report.read.is_multiple_of(PROGRESS_LINES) {
                progress::show(format_args!("{} lines checked", report.read));
            }
        }
        match &source.segment {
            Some(segment) => segment.ensure_is(hash, &source.path).context("nothing is imported"),
            None => Ok(()),
        }
    }

    fn add(
        &mut self,
        event: &SequencedEvent,
        place: (usize, u64, usize),
        is_exported: bool,
    ) -> Result<()> {
        let partition = Partition::of(event);
        let lanes = &mut self.lanes;
        let n = *self.by_partition.entry(partition.clone()).or_insert_with(|| {
            lanes.push(Lane::new(partition, event.slot, is_exported));
            lanes.len() - 1
        });
        let lane = &mut lanes[n];
        let next = lane.first + lane.events.len() as u64;
        ensure!(
            event.slot >= next,
            "{} is there twice, or after a later event of its partition",
            event.id()
        );
        ensure!(event.slot == next, "{}/{next} is missing before {}", event.partition, event.id());
        lane.check_time(event.at, lane.order)?;
        lane.order = lane.order.max(event.at);
        let (source, offset, bytes) = place;
        let (order, partition, nth) = (lane.order, n, lane.events.len());
        lane.events.push(There::of(event));
        self.lines.push(Line { order, source, offset, bytes, partition, nth });
        Ok(())
    }

    /// Finds which events the logs have. Fails if a log has another event in the place of one, or has the later events
    /// and lacks an earlier one.
    async fn compare(&mut self, logs: &Writable<'_>, report: &mut Report) -> Result<()> {
        let all = self.lanes.len();
        let compared = stream::iter(&self.lanes).map(|lane| async move {
            let found = logs.found(&lane.partition, lane.first, lane.events.len()).await;
            found.with_context(|| format!("reading {}", lane.partition))
        });
        let mut compared = compared.buffered(PARTITIONS);
        let mut found = Vec::with_capacity(all);
        while let Some(events) = compared.try_next().await? {
            found.push(events);
            progress::show(format_args!("{} of {all} partitions compared", found.len()));
        }
        drop(compared);
        progress::clear();
        for (lane, found) in self.lanes.iter_mut().zip(found) {
            lane.meet(found, report);
        }
        Ok(())
    }

    /// Writes the events that the logs lack, in the order of the times.
    async fn write(
        &mut self,
        sources: &[Source],
        logs: &Writable<'_>,
        report: &mut Report,
    ) -> Result<()> {
        let lanes = &mut self.lanes;
        self.lines.retain(|line| line.nth >= lanes[line.partition].before);
        self.lines.sort_by_key(|line| line.order);
        let mut files = sources.iter().map(Source::open).collect::<Result<Vec<_>>>()?;
        let all = self.lines.len();
        for lines in self.lines.chunks(EVENTS) {
            let mut events = Vec::with_capacity(lines.len());
            for line in lines {
                let (partition, event) = (line.partition, line.event(&mut files)?);
                events.push(Put { partition, after: lanes[partition].last_at, event });
            }
            let mut failed = None;
            for (partition, was_at, put) in logs.put(events).await {
                match put {
                    Ok(at) => {
                        lanes[partition].last_at = at;
                        report.imports.imported += 1;
                        report.imports.later += u64::from(at > was_at);
                    }
                    Err(error) => failed = Some(error),
                }
            }
            failed.map_or(Ok(()), Err)?;
            progress::show(format_args!("{} of {all} events imported", report.imports.imported));
        }
        progress::clear();
        Ok(())
    }
}

impl Lane {
    fn new(partition: Partition, first: u64, is_exported: bool) -> Self {
        let (events, order, before, gone, last_at) = (Vec::new(), 0, 0, 0, 0);
        Self { partition, first, events, order, before, gone, last_at, is_exported }
    }

    /// Fails if an event would go back in time in a log that keeps times as they are: `aggregates verify` would call it
    /// wrong. Other programs may have written such events into a log, so an export of it is copied as it is.
    fn check_time(&self, at: u64, after: u64) -> Result<()> {
        let is_kept = self.partition.log == LogKind::Aggregates && !self.is_exported;
        ensure!(
            !is_kept || at >= after,
            "recordedAt: is {}, and the event before it in {} is of {}; give it that time or a later one",
            rfc3339(at),
            self.partition,
            rfc3339(after)
        );
        Ok(())
    }

    /// Compares with the events of the log, from the one before the first line on.
    fn meet(&mut self, Found { began, events: found }: Found, report: &mut Report) {
        let (first, log) = (self.first, self.partition.log);
        let name = |slot| format!("{}/{slot}", self.partition);
        let mut found = found.into_iter().peekable();
        let gone = usize::try_from(began.saturating_sub(first)).unwrap_or(usize::MAX);
        self.gone = gone.min(self.events.len());
        self.before = self.gone;
        if first > log.first_slot() && began < first {
            match found.next_if(|(slot, _)| slot + 1 == first) {
                Some((_, before)) => self.last_at = before.at,
                None => {
                    let cause = "the log lacks the event before it: export from an earlier place, or import the events \
                                 before it first";
                    return report.refuse(&Error::msg(cause), name(first));
                }
            }
        }
        for (slot, there) in found {
            let Some(event) = self.events.get(self.before) else { return };
            // An imported event may have got a later time.
            if slot != first + self.before as u64
                || there.content != event.content
                || there.at < event.at
            {
                let cause = "the log has another event in its place, so the import can't be completed here: begin with empty tables";
                return report.refuse(&Error::msg(cause), name(slot));
            }
            self.last_at = there.at;
            self.before += 1;
        }
        if let Some(next) = self.events.get(self.before)
            && let Err(cause) = self.check_time(next.at, self.last_at)
        {
            report.refuse(&cause, name(first + self.before as u64));
        }
    }
}

impl Line {
    /// The event, read again.
    fn event(&self, files: &mut [BufReader<File>]) -> Result<SequencedEvent> {
        let mut bytes = vec![0; self.bytes];
        let file = &mut files[self.source];
        file.seek(SeekFrom::Start(self.offset)).and_then(|_| file.read_exact(&mut bytes))?;
        event_of(std::str::from_utf8(&bytes)?)
    }
}
