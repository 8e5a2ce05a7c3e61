//! A compacted copy, and decisions on it.

use std::collections::BTreeSet;
use std::fs;

use futures::executor::block_on;
use projects::facts::*;
use projects::{EdgeConverged, FeatureCreated};
use ringfence_core::kit::{BEGIN_MS, id};
use ringfence_core::{Append, Envelope, EventLog, MemoryLog, NewEvent, events};
use ringfence_feed::{Checkpoint, Entry};
use ringfence_harness::bound;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::cache::Cache;
use super::super::decide::Slices;
use super::super::folder::{EVENTS, Reading};
use super::super::outbox::Queued;
use super::*;
use projects::line::{Line, Place};

fn shop(root: &TempDir) -> Folder {
    Folder::at(root.path(), &"shop".parse().unwrap())
}

/// The end of an edge of another feature.
fn done(feature: &str, edge: &str) -> EdgeConverged {
    converged(&format!("{feature}/{edge}"), "c1")
}

/// AUTH and SEARCH are done, in turns, and PAY waits for AUTH. Then more work comes up in SEARCH.
fn work() -> Vec<NewEvent> {
    let pay = FeatureCreated { dependencies: vec![id(AUTH)], ..created(PAY) };
    events![
        initialized(single()),
        created(AUTH),
        created(SEARCH),
        started("primary", "c1", 1),
        done(SEARCH, "requirements_design"),
        done(AUTH, "requirements_design"),
        pay,
        done(SEARCH, "design_code"),
        converged(DESIGN_CODE, "c1"),
        projects::EdgeReopened { edge: id(&format!("{SEARCH}/design_code")), ..reopened(2) },
        done(SEARCH, "design_code"),
    ]
}

/// The lines of events, a second apart.
fn lines(events: Vec<NewEvent>, slices: &Slices) -> Vec<Line> {
    let log = MemoryLog::new(slices.catalog().clone());
    for (second, event) in (0..).zip(events) {
        let mut envelope = Envelope::default();
        envelope.context.now_ms = BEGIN_MS + second * 1_000;
        let (events, envelope) = (vec![event], &envelope);
        block_on(log.append(Append { events, seen: None, record: None, envelope })).unwrap();
    }
    let line = |(n, event)| Line::of(Entry { checkpoint: Checkpoint::try_from(n).unwrap(), event });
    (1..).zip(log.events()).filter_map(line).collect()
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(to_text).collect()
}

fn standing(folder: &Reading<'_>) -> Standing {
    Standing::read(folder, &PARTS, |_, _| ()).unwrap().0
}

/// The result of a claim by `ada` here, as text.
fn claims(folder: &Reading<'_>, slices: &Slices, edge: &str, after: &[&str]) -> String {
    let data = json!({ "edge": edge, "agent": "ada", "claim": "c9", "after": after });
    let (slice, key) = ("claim-edge".to_owned(), "key".to_owned().try_into().unwrap());
    let queued = Queued { slice, data, key, effective_at: rfc3339(BEGIN_MS + 1_000_000) };
    let mut cache = block_on(Cache::read(folder, slices)).unwrap();
    match block_on(cache.try_out(slices, &queued)) {
        Ok(decided) => format!("{:?}", decided.unwrap().outcome),
        Err(error) => error.to_string(),
    }
}

/// Two compactions, at all times and with all numbers of lines that have come by then. Equal files are checked once.
#[test]
fn whenever_a_copy_is_compacted_it_tells_the_same_and_decides_the_same() {
    let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
    let folder = shop(&root);
    let folder = folder.write().unwrap();
    let lines = lines(work(), &slices);
    folder.replace(EVENTS, &text(&lines)).unwrap();
    let (all, free) = (standing(&folder), format!("{PAY}/requirements_design"));
    let granted = claims(&folder, &slices, &free, &[AUTH]);
    assert!(granted.starts_with("Accepted("), "{granted}");
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    let mut most = 0;
    for pulled in 0..=lines.len() {
        for first in 0..=pulled {
            folder.replace(EVENTS, &text(&lines[..pulled])).unwrap();
            let time = |n: usize| rfc3339(BEGIN_MS + n as u64 * 1_000);
            compact(&folder, &time(first)).unwrap();
            let end = folder.lines(|_| Ok(())).unwrap();
            folder.behind(&end).unwrap().append(&text(&lines[pulled..])).unwrap();
            let once = folder.text(EVENTS).unwrap().unwrap();
            if !begun.insert(once.clone()) {
                continue;
            }
            for second in 0..=lines.len() {
                folder.replace(EVENTS, &once).unwrap();
                compact(&folder, &time(second)).unwrap();
                let twice = folder.text(EVENTS).unwrap().unwrap();
                most = most.max(lines.len() - twice.lines().count());
                if !ended.insert(twice) {
                    continue;
                }
                let context = format!("{pulled} lines, before {first}, then before {second}");
                assert_eq!(standing(&folder), all, "{context}");
                assert_eq!(claims(&folder, &slices, &free, &[AUTH]), granted, "{context}");
                let end = folder.lines(|_| Ok(())).unwrap();
                let last = Place::of_line(lines.last().unwrap());
                assert_eq!(end.place(), Some(last), "{context}");
            }
        }
    }
    // All five lines of SEARCH, and the snapshot is one more. PAY waits for AUTH.
    assert_eq!(most, 4);
}

#[test]
fn a_line_of_which_a_clock_says_that_it_is_new_keeps_its_feature_alone() {
    let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
    let folder = shop(&root);
    let folder = folder.write().unwrap();
    let (since, ahead) = (rfc3339(BEGIN_MS + 3_600_000), rfc3339(BEGIN_MS + 9_000_000));
    for (n, folded) in [(0, vec![(id("REQ-F-SEARCH-001"), 5)]), (2, vec![])] {
        let mut lines = lines(work(), &slices);
        lines[n].timestamp.clone_from(&ahead);
        folder.replace(EVENTS, &text(&lines)).unwrap();
        let all = standing(&folder);
        let folded: BTreeMap<FeatureId, u64> = folded.into_iter().collect();
        assert_eq!(compact(&folder, &since).unwrap(), folded);
        assert_eq!(standing(&folder), all);
    }
}

/// A lost line would not come back with the next pull.
#[test]
fn wherever_a_compacted_copy_is_cut_it_is_damaged_or_empty() {
    let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
    let folder = shop(&root);
    let folder = folder.write().unwrap();
    folder.replace(EVENTS, &text(&lines(work(), &slices))).unwrap();
    compact(&folder, &rfc3339(BEGIN_MS + 3_600_000)).unwrap();
    let whole = folder.text(EVENTS).unwrap().unwrap();
    let first = whole.find('\n').unwrap();
    for cut in (0..whole.len()).step_by(bound(7, 1)) {
        fs::write(folder.path(EVENTS), &whole[..cut]).unwrap();
        match folder.lines(|_| Ok(())) {
            Ok(end) => assert!(cut <= first && end.place().is_none(), "cut at {cut}"),
            Err(error) => {
                let line = whole[..cut].matches('\n').count() + 1;
                let named = format!("line {line} of {}", folder.path(EVENTS).display());
                assert!(cut > first && error.to_string().starts_with(&named), "{error}");
            }
        }
    }
    folder.replace(EVENTS, &(whole.clone() + "{")).unwrap();
    assert_eq!(folder.lines(|_| Ok(())).unwrap().bytes, whole.len() as u64);
}

#[test]
fn what_another_version_has_folded_is_not_read() {
    let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
    let folder = shop(&root);
    let folder = folder.write().unwrap();
    folder.replace(EVENTS, &text(&lines(work(), &slices))).unwrap();
    compact(&folder, &rfc3339(BEGIN_MS + 3_600_000)).unwrap();
    let snapshot = folder.snapshot().unwrap().unwrap();
    let (text, version) = (folder.text(EVENTS).unwrap().unwrap(), "0.0.1".to_owned());
    let other =
        text.replace(&to_text(&snapshot), &to_text(&Snapshot { version, ..snapshot.clone() }));
    folder.replace(EVENTS, &other).unwrap();
    let error = Standing::read(&folder, &PARTS, |_, _| ()).unwrap_err().to_string();
    assert!(error.starts_with("version 0.0.1 has compacted the copy"), "{error}");
}

/// PAY waits for AUTH through SEARCH. A child is folded back by a feature that is not done, or not yet.
#[test]
fn what_an_open_feature_may_ask_for_stays() {
    let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
    let folder = shop(&root);
    let folder = folder.write().unwrap();
    let since = rfc3339(BEGIN_MS + 3_600_000);
    let folds = |events: Vec<NewEvent>| {
        folder.replace(EVENTS, &text(&lines(events, &slices))).unwrap();
        let folded = compact(&folder, &since).unwrap().into_keys();
        folded.map(|feature| feature.to_string()).collect::<Vec<_>>()
    };
    let both =
        |feature: &str| events![done(feature, "requirements_design"), done(feature, "design_code")];
    let depends =
        |feature: &str, on: &str| FeatureCreated { dependencies: vec![id(on)], ..created(feature) };
    let search = depends(SEARCH, AUTH);
    let mut chain = events![initialized(single()), created(AUTH), search, depends(PAY, SEARCH)];
    chain.extend([both(AUTH), both(SEARCH)].concat());
    assert_eq!(folds(chain.clone()), [""; 0]);
    chain.extend(both(PAY));
    assert_eq!(folds(chain), ["REQ-F-AUTH-001", "REQ-F-PAY-001", "REQ-F-SEARCH-001"]);

    let mut child = events![initialized(single()), created(AUTH), created(SEARCH)];
    child.extend(events![started("primary", "c1", 1), spawned(SEARCH, true)]);
    child.extend(both(SEARCH));
    assert_eq!(folds(child.clone()), [""; 0]);
    child.extend(events![folded_back(SEARCH)]);
    assert_eq!(folds(child), ["REQ-F-SEARCH-001"]);

    // AUTH is done by its rules, and somebody still holds an edge that they had once.
    let mut held = events![initialized(single()), created(AUTH)];
    held.extend(both(AUTH));
    let old = id(&format!("{AUTH}/old"));
    held.extend(events![projects::EdgeStarted { edge: old, ..started("primary", "c2", 1) }]);
    assert_eq!(folds(held), [""; 0]);
}

#[test]
fn a_feature_with_an_event_that_this_version_does_not_know_stays() {
    let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
    let folder = shop(&root);
    let folder = folder.write().unwrap();
    let mut lines = lines(work(), &slices);
    lines.push(Line {
        checkpoint: Checkpoint::try_from(12).unwrap(),
        event_type: "feature_praised".to_owned(),
        ..lines[10].clone()
    });
    folder.replace(EVENTS, &text(&lines)).unwrap();
    assert_eq!(compact(&folder, &rfc3339(BEGIN_MS + 3_600_000)).unwrap(), [].into());
}

#[test]
fn what_a_waiting_command_names_stays_and_one_that_rests_on_what_is_gone_is_told() {
    let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
    let folder = shop(&root);
    let folder = folder.write().unwrap();
    folder.replace(EVENTS, &text(&lines(work(), &slices))).unwrap();
    let data = json!({ "feature": PAY, "agent": "ada", "on": SEARCH, "reachable": [SEARCH] });
    let (slice, key) = ("add-dependency".to_owned(), "first".to_owned().try_into().unwrap());
    let waits = Queued { slice, data, key, effective_at: rfc3339(BEGIN_MS + 900_000) };
    let mut outbox = Outbox::read(&folder).unwrap();
    outbox.add(&folder, waits.clone()).unwrap();
    let since = rfc3339(BEGIN_MS + 3_600_000);
    assert_eq!(compact(&folder, &since).unwrap(), [].into());
    outbox.accepted(&folder, &waits.key).unwrap();
    assert_eq!(compact(&folder, &since).unwrap().len(), 1);
    outbox.add(&folder, waits).unwrap();
    let refused = claims(&folder, &slices, &format!("{PAY}/requirements_design"), &[AUTH]);
    let expected = format!("the events of {SEARCH} are folded, and a command that waits");
    assert!(refused.starts_with(&expected), "{refused}");
}

#[test]
fn what_needs_events_that_are_gone_is_not_decided() {
    let (root, slices) = (tempfile::tempdir().unwrap(), Slices::all());
    let folder = shop(&root);
    let folder = folder.write().unwrap();
    let lines = lines(work(), &slices);
    folder.replace(EVENTS, &text(&lines)).unwrap();
    let folded = compact(&folder, &rfc3339(BEGIN_MS + 3_600_000)).unwrap();
    assert_eq!(folded, [(id("REQ-F-SEARCH-001"), 5)].into());
    let refused = format!("the events of {SEARCH} are folded, and the command needs them");
    let edge = format!("{SEARCH}/design_code");
    assert!(claims(&folder, &slices, &edge, &[]).starts_with(&refused));
    let other = format!("{PAY}/requirements_design");
    assert!(claims(&folder, &slices, &other, &[AUTH, SEARCH]).starts_with(&refused));
    // It is worked on again. Its new events alone are not enough for a decision.
    let reopened = Line { checkpoint: Checkpoint::try_from(12).unwrap(), ..lines[9].clone() };
    let end = folder.lines(|_| Ok(())).unwrap();
    folder.behind(&end).unwrap().append(&to_text(&reopened)).unwrap();
    assert!(claims(&folder, &slices, &edge, &[]).starts_with(&refused));
    assert!(claims(&folder, &slices, &other, &[AUTH]).starts_with("Accepted("));
    // An open feature is not folded, even if it was before.
    let later = rfc3339(BEGIN_MS + 7_200_000);
    assert_eq!(compact(&folder, &later).unwrap(), [].into());
    let is_search = |line: &Value| line["feature"] == "REQ-F-SEARCH-001";
    let text = fs::read_to_string(folder.path(EVENTS)).unwrap();
    let left = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
    assert_eq!(left.filter(is_search).count(), 1);
}
