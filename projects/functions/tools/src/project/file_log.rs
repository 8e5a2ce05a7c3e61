//! The log of a local project: its file, and the same events in memory, where commands are decided.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use projects::ProjectId;
use ringfence_core::{Append, Appended, Envelope, EventLog, MemoryLog, NewEvent, SequencedEvent};
use ringfence_feed::{Checkpoint, Entry};

use super::folder::{EVENTS, End, Writing};
use projects::line::{Line, to_text};

/// The log in memory, and the file of its events, which nobody else writes meanwhile.
///
/// It does not store items of commands in the file. Only a command with an idempotency key has one, and keys are for
/// answers that are lost on the way.
pub(crate) struct FileLog<'a> {
    pub(crate) memory: MemoryLog,
    folder: &'a Writing<'a>,
    /// The end of the file.
    end: End,
    /// The ids of the events in the file.
    kept: BTreeSet<String>,
}

impl<'a> FileLog<'a> {
    /// The log of the events of a file that ends there.
    pub(crate) fn new(folder: &'a Writing<'a>, end: End, memory: MemoryLog) -> Self {
        let kept = memory.events().iter().map(SequencedEvent::id).collect();
        Self { memory, folder, end, kept }
    }

    /// Appends the events of a command to the file. They are on the disk, all of them, before this returns.
    ///
    /// # Errors
    /// An event is of another project, or the file can't be written. The bytes may be on the disk then, or not.
    pub(crate) fn keep(&mut self) -> Result<()> {
        let new = self.memory.events().into_iter();
        let new: Vec<_> = new.filter(|event| !self.kept.contains(&event.id())).collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut end = self.end.clone();
        let text = lines(self.folder.project(), &mut end, &new)?;
        // The rest of a broken append is cut off.
        let kept = self.folder.behind(&self.end).and_then(|mut file| file.append(&text));
        kept.context("the command may have taken effect: `ringfence project log` shows it")?;
        self.end = end;
        self.kept.extend(new.iter().map(SequencedEvent::id));
        Ok(())
    }

    /// Appends the events of the lines with these numbers, without any condition. The file is replaced, so all of them
    /// are appended, or no event is.
    ///
    /// # Errors
    /// An event can't be appended, or the file can't be written.
    pub(crate) async fn append_all(
        mut self,
        appends: impl IntoIterator<Item = (usize, Vec<NewEvent>, Envelope)>,
    ) -> Result<()> {
        // The rest of a broken append is cut off, so the file is text.
        drop(self.folder.behind(&self.end)?);
        let mut text = self.folder.text(EVENTS)?.unwrap_or_default();
        for (number, events, envelope) in appends {
            let append = Append { events, seen: None, record: None, envelope: &envelope };
            let appended = self.memory.append(append).await;
            let appended = appended.with_context(|| format!("line {number}"))?;
            let Appended::Committed(events) = appended else {
                unreachable!("an append without a command is never a repeat");
            };
            text += &lines(self.folder.project(), &mut self.end, &events)?;
        }
        self.folder.replace(EVENTS, &text)
    }
}

/// The lines of an append after the end, which moves to the end of these lines.
///
/// # Errors
/// An event is of another project.
fn lines(project: &ProjectId, end: &mut End, events: &[SequencedEvent]) -> Result<String> {
    let mut text = String::new();
    for (event, rest) in events.iter().zip((0..events.len() as u64).rev()) {
        let number = end.last.as_ref().map_or(0, |line| i64::from(line.checkpoint)) + 1;
        let checkpoint = Checkpoint::try_from(number).expect("a file has fewer lines");
        let line = Line::of(Entry { checkpoint, event: event.clone() });
        let line = line.filter(|line| line.project == *project).with_context(|| {
            format!("event {} does not belong to the project {project}", event.id())
        })?;
        let line = Line { rest: Some(rest), ..line };
        text += &to_text(&line);
        end.last = Some(line);
    }
    end.bytes += text.len() as u64;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures::executor::block_on;
    use projects::Projects;
    use projects::facts::{AUTH, DESIGN_CODE, created, started};
    use ringfence_core::{HandleError, Handled, OnEvents, OnLog, Slice, events};
    use ringfence_harness::bound;
    use ringfence_stack::{MemberList, Visitor};

    use super::super::cache::Cache;
    use super::super::decide::Slices;
    use super::super::folder::{Folder, Reading};
    use super::*;
    use projects::line::About;

    fn shop(root: &tempfile::TempDir) -> Folder {
        Folder::at(root.path(), &"shop".parse().unwrap())
    }

    fn open<'a>(folder: &'a Writing<'a>, slices: &Slices) -> FileLog<'a> {
        let cache = block_on(Cache::read(folder, slices)).unwrap();
        cache.file_log(folder, slices).unwrap()
    }

    fn append(log: &mut FileLog<'_>, events: Vec<NewEvent>) -> Result<()> {
        let envelope = Envelope::default();
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        block_on(log.memory.append(append)).unwrap();
        log.keep()
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
    struct OnFile<'l, S: Slice>(OnEvents<S, &'l MemoryLog>);

    impl<S: Slice> OnLog<S> for OnFile<'_, S> {
        async fn handle(&self, command: &S, envelope: &Envelope) -> Result<Handled, HandleError> {
            self.0.handle(command, envelope).await
        }

        async fn add(&self, events: Vec<NewEvent>, envelope: &Envelope) -> Result<(), HandleError> {
            let is_of_shop = |event: &NewEvent| {
                About::of(&event.data).project.is_some_and(|of| of.to_string() == "shop")
            };
            match events.iter().all(is_of_shop) {
                true => self.0.add(events, envelope).await,
                false => Ok(()),
            }
        }
    }

    struct Cases(Slices);

    impl Visitor for Cases {
        fn slice<S: Slice>(&mut self) {
            for case in S::cases() {
                let root = tempfile::tempdir().unwrap();
                let folder = shop(&root);
                let folder = folder.write().unwrap();
                let mut log = open(&folder, &self.0);
                let on = OnFile(OnEvents::new(&log.memory, self.0.catalog().clone(), 0));
                block_on(case.check(&on, &|_| {}));
                log.keep().unwrap();
                // The next decision depends on the file alone.
                let events = log.memory.events().into_iter();
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
        let mut log = open(&folder, &slices);
        append(&mut log, events![created(AUTH)]).unwrap();
        let before = folder.text("events.jsonl").unwrap().unwrap().len();
        append(
            &mut log,
            events![started("ada", "c1", 1), started("ada", "c2", 2), started("ada", "c3", 3)],
        )
        .unwrap();
        let all = fs::read(folder.path("events.jsonl")).unwrap();
        for cut in (before..all.len()).step_by(bound(7, 1)) {
            fs::write(folder.path("events.jsonl"), &all[..cut]).unwrap();
            assert_eq!(kept(&folder).len(), 1, "cut at {cut}");
            assert!(folder.is_local().unwrap());
            append(&mut open(&folder, &slices), events![started("ada", "c4", 1)]).unwrap();
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
        let mut log = open(&folder, &slices);
        append(&mut log, events![created(AUTH)]).unwrap();
        append(&mut log, events![started("ada", "c1", 1), started("ada", "c2", 2)]).unwrap();
        append(&mut log, events![started("ada", "c3", 3)]).unwrap();
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
        let events = events![created(AUTH), created("other/REQ-F-AUTH-001")];
        let error = append(&mut open(&folder, &slices), events).unwrap_err().to_string();
        assert_eq!(
            error,
            "event feature:other%2FREQ-F-AUTH-001/1 does not belong to the project shop"
        );
        assert_eq!(kept(&folder), vec![]);
    }
}
