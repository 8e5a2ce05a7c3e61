//! The log of a local project: its file, and the same events in memory, where commands are decided.

use std::sync::Mutex;

use anyhow::Result;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use futures::stream::BoxStream;
use projects::ProjectId;
use ringfence::{
    Append, Appended, CommandRecord, Conflict, Consistency, Envelope, EventLog, EventRef, LogError,
    MemoryLog, NewEvent, Plan, Seen, SequencedEvent, StoreError,
};
use ringfence_feed::{Checkpoint, Entry};

use super::folder::{EVENTS, End, Writing};
use super::line::{Line, to_text};

/// A log on a file that nobody else writes meanwhile. An append is on the disk, whole, before it is answered.
///
/// It keeps no items of commands once it is closed. Only a command with an idempotency key has one, and a key is for
/// answers that are lost on the way.
pub(crate) struct FileLog<'a> {
    memory: MemoryLog,
    folder: &'a Writing<'a>,
    end: Mutex<End>,
}

impl<'a> FileLog<'a> {
    /// The log of the events of a file that ends there.
    pub(crate) fn new(folder: &'a Writing<'a>, end: End, memory: MemoryLog) -> Self {
        Self { memory, folder, end: Mutex::new(end) }
    }

    /// The events, in their order.
    pub(crate) fn events(&self) -> Vec<SequencedEvent> {
        self.memory.events()
    }

    /// Appends lists of events without any condition, all of the lists or none: the file is replaced.
    ///
    /// # Errors
    /// An event can't be appended, or the file can't be written.
    pub(crate) fn append_all(
        self,
        appends: impl IntoIterator<Item = (Vec<NewEvent>, Envelope)>,
    ) -> Result<()> {
        let mut end = self.end.into_inner().expect("no code panics while it holds the lock");
        // What an append before has left is cut off, so what is there is text.
        drop(self.folder.behind(&end)?);
        let mut text = self.folder.text(EVENTS)?.unwrap_or_default();
        for (events, envelope) in appends {
            let append = Append { events, seen: None, record: None, envelope: &envelope };
            self.memory.append_kept(append, |events| {
                text += &lines(self.folder.project(), &mut end, events)?;
                Ok(())
            })?;
        }
        self.folder.replace(EVENTS, &text)
    }

    /// Keeps an append.
    fn keep(&self, events: &[SequencedEvent]) -> Result<(), LogError> {
        let mut end = self.end.lock().expect("no code panics while it holds the lock");
        let mut new = end.clone();
        let text = lines(self.folder.project(), &mut new, events)?;
        // If it fails, the bytes may be on the disk or not. A further append of this log cuts them off.
        let kept = self.folder.behind(&end).and_then(|mut file| file.append(&text));
        kept.map_err(|error| StoreError::OutcomeUnknown { attempts: 1, source: error.into() })?;
        *end = new;
        Ok(())
    }
}

/// The lines of an append behind the end, which moves behind them.
///
/// # Errors
/// An event is of another project.
fn lines(
    project: &ProjectId,
    end: &mut End,
    events: &[SequencedEvent],
) -> Result<String, StoreError> {
    let mut text = String::new();
    for (event, rest) in events.iter().zip((0..events.len() as u64).rev()) {
        let number = end.last.as_ref().map_or(0, |line| i64::from(line.checkpoint)) + 1;
        let checkpoint = Checkpoint::try_from(number).expect("a file has fewer lines");
        let line = Line::of(Entry { checkpoint, event: event.clone() });
        let line = line.filter(|line| line.project == *project).ok_or_else(|| {
            let source =
                format!("event {} does not belong to the project {project}", event.id()).into();
            StoreError::Failed { operation: "appending to the file", source }
        })?;
        let line = Line { rest: Some(rest), ..line };
        text += &to_text(&line);
        end.last = Some(line);
    }
    end.bytes += text.len() as u64;
    Ok(text)
}

impl EventLog for FileLog<'_> {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        self.memory.read(plan, consistency, envelope)
    }

    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        ready(self.memory.append_kept(append, |events| self.keep(events))).boxed()
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        self.memory.verify(seen, envelope)
    }

    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
        self.memory.recorded(record, envelope)
    }

    fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        self.memory.pause(attempt, envelope)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures::executor::block_on;
    use projects::Projects;
    use projects::facts::{AUTH, DESIGN_CODE, created, started};
    use ringfence::kit::{Came, CaseLog, CaseResult, Fact, OnEvents};
    use ringfence::{CommandContext, Slice, events};
    use ringfence_stack::{MemberList, Visitor};

    use super::super::cache::Cache;
    use super::super::decide::Slices;
    use super::super::folder::{Folder, Reading};
    use super::super::line::About;
    use super::*;

    fn shop(root: &tempfile::TempDir) -> Folder {
        Folder::at(root.path(), &"shop".parse().unwrap())
    }

    fn open<'a>(folder: &'a Writing<'a>, slices: &Slices) -> FileLog<'a> {
        let cache = block_on(Cache::read(folder, slices)).unwrap();
        cache.file_log(folder, slices).unwrap()
    }

    fn append(log: &FileLog<'_>, events: Vec<NewEvent>) {
        let envelope = Envelope::default();
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        block_on(log.append(append)).unwrap();
    }

    fn kept(folder: &Reading<'_>) -> Vec<SequencedEvent> {
        let mut events = Vec::new();
        let keep = |line: Line| {
            events.push(line.event()?);
            Ok(())
        };
        folder.lines(keep).unwrap();
        events
    }

    /// Cases on a file. Facts of other projects are not in it, and the commands are decided alike.
    struct OnFile<'l, 'f>(OnEvents<'l, FileLog<'f>, fn(u64)>);

    impl<S: Slice> CaseLog<S> for OnFile<'_, '_> {
        fn set_clock(&self, _: u64) {}

        async fn add(&self, fact: &Fact) -> CaseResult<()> {
            match About::of(&fact.event.data).project {
                Some(project) if project.to_string() == "shop" => {
                    CaseLog::<S>::add(&self.0, fact).await
                }
                _ => Ok(()),
            }
        }

        async fn run(&self, command: &S, context: &CommandContext) -> CaseResult<Came> {
            self.0.run(command, context).await
        }
    }

    struct Cases(Slices);

    impl Visitor for Cases {
        fn dcb_slice<S: Slice>(&mut self) {
            for case in S::cases() {
                let root = tempfile::tempdir().unwrap();
                let folder = shop(&root);
                let folder = folder.write().unwrap();
                let log = open(&folder, &self.0);
                block_on(case.check(&OnFile(OnEvents { log: &log, set_clock: |_| {} })));
                // What is decided next rests on the file alone.
                let events = log.events().into_iter();
                let events: Vec<_> = events.map(|it| SequencedEvent { rest: 0, ..it }).collect();
                assert_eq!(kept(&folder), events, "{}", S::NAME);
            }
        }
    }

    #[test]
    fn every_case_of_every_slice_holds_on_the_file() {
        MemberList::walk::<Projects>(&mut Cases(Slices::all()));
    }

    #[test]
    fn of_an_append_that_broke_off_at_any_byte_nothing_is_left() {
        let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
        let folder = shop(&root);
        let folder = folder.write().unwrap();
        let log = open(&folder, &slices);
        append(&log, events![created(AUTH)]);
        let before = folder.text("events.jsonl").unwrap().unwrap().len();
        append(
            &log,
            events![started("ada", "c1", 1), started("ada", "c2", 2), started("ada", "c3", 3)],
        );
        let all = fs::read(folder.path("events.jsonl")).unwrap();
        for cut in before..all.len() {
            fs::write(folder.path("events.jsonl"), &all[..cut]).unwrap();
            assert_eq!(kept(&folder).len(), 1, "cut at {cut}");
            assert!(folder.is_local().unwrap());
            append(&open(&folder, &slices), events![started("ada", "c4", 1)]);
            let events = kept(&folder);
            let last = events.last().unwrap();
            assert_eq!((events.len(), last.slot), (2, 1), "cut at {cut}");
            assert_eq!(last.data["edge"], DESIGN_CODE);
        }
    }

    #[test]
    fn a_damaged_line_that_others_follow_is_named_and_the_log_stays() {
        let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
        let folder = shop(&root);
        let folder = folder.write().unwrap();
        let log = open(&folder, &slices);
        append(&log, events![created(AUTH)]);
        append(&log, events![started("ada", "c1", 1), started("ada", "c2", 2)]);
        append(&log, events![started("ada", "c3", 3)]);
        let text = folder.text("events.jsonl").unwrap().unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for damaged in [["{\n", lines[1]], ["", lines[1]], [lines[0], ""]] {
            let left = [&damaged, &lines[2..]].concat();
            folder.replace("events.jsonl", &left.concat()).unwrap();
            let error = folder.lines(|_| Ok(())).unwrap_err().to_string();
            assert!(
                error.starts_with("line ") && error.ends_with("take the file from a copy"),
                "{error}"
            );
            assert!(folder.is_local().unwrap());
        }
    }

    #[test]
    fn events_of_another_project_are_refused() {
        let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
        let folder = shop(&root);
        let folder = folder.write().unwrap();
        let log = open(&folder, &slices);
        let envelope = Envelope::default();
        let events = events![created(AUTH), created("other/REQ-F-AUTH-001")];
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        let error = block_on(log.append(append)).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(
            cause,
            "event feature:other%2FREQ-F-AUTH-001/1 does not belong to the project shop"
        );
        assert_eq!((log.events(), kept(&folder)), (vec![], vec![]));
    }
}
