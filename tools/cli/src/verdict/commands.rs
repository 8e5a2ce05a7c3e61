//! Slices and functions that fail, and slices whose commands meet conflicts.

use std::collections::BTreeMap;

use super::finding::{
    COMMANDS_MS, CONTENDED_MIN, REJECTED_MIN, StackFault, StackVerdict, What, counted,
};
use super::sources::VerdictSources;
use crate::commands::{CommandLine, FunctionLines, OutcomeKind, RunLine};

const UNNAMED: &str = "commands, whose lines are named with --log-group, --logs or --stack";
/// The page that lists failures and rejections with their causes.
const URL: &str = "/commands#failures";
const STEP: &str = "See what failed, and mend the cause";
const CUT: &str =
    "some commands of the last 15 minutes, because there are more than are read at once";

pub(super) async fn find(sources: &VerdictSources<'_>, now_ms: u64) -> StackVerdict {
    if !sources.flags.commands.are_known() {
        return StackVerdict { unknown: vec![UNNAMED], ..StackVerdict::default() };
    }
    let mut verdict = StackVerdict::default();
    let since_ms = now_ms.saturating_sub(COMMANDS_MS);
    match sources.flags.commands.all_since(since_ms).await {
        Ok(lines) => {
            verdict.findings =
                of(&lines, |name| sources.stack.slices().any(|(_, slice)| slice.name == name));
            verdict.unknown.extend(lines.are_cut().then_some(CUT));
        }
        Err(error) => verdict.unreadable("lines of commands", "/commands", &error),
    }
    verdict
}

/// The faults in these lines. A slice writes a line for each command. If a run ends before it has written that line,
/// as by a panic, there is a line of the run.
fn of(
    FunctionLines { commands, runs }: &FunctionLines,
    is_slice: impl Fn(&str) -> bool,
) -> Vec<StackFault> {
    let mut of_function = BTreeMap::<&str, (Vec<&CommandLine>, Vec<&RunLine>)>::new();
    for line in commands {
        of_function.entry(&line.slice).or_default().0.push(line);
    }
    for run in runs {
        if let Some(function) = &run.failed_function {
            of_function.entry(function).or_default().1.push(run);
        }
    }
    let faults = of_function.into_iter().flat_map(|(name, (lines, runs))| {
        let failed = fails(name, is_slice(name), &lines, &runs);
        [failed.or_else(|| rejects(name, &lines)), contended(name, &lines)]
    });
    faults.flatten().collect()
}

/// A function that failed.
fn fails(
    name: &str,
    is_slice: bool,
    lines: &[&CommandLine],
    runs: &[&RunLine],
) -> Option<StackFault> {
    let lines = lines.iter().filter(|line| line.kind() == OutcomeKind::Failed);
    let lines = lines.map(|line| (line.at_ms(), line.cause.as_ref().or(Some(&line.outcome))));
    let mut failed: Vec<_> =
        runs.iter().map(|run| (run.at_ms(), run.cause.as_ref())).chain(lines).collect();
    failed.sort_by_key(|(at_ms, _)| *at_ms);
    let (since_ms, cause) = (failed.first()?.0, failed.last()?.1.cloned());
    let count = failed.len() as u64;
    // A run that ended may be one of several tries of a command.
    let failures = match runs {
        [] => counted(count, "command", "commands"),
        _ => counted(count, "run", "runs"),
    };
    Some(StackFault {
        what: if is_slice { What::Slice } else { What::Function },
        names: vec![name.to_owned()],
        count,
        since_ms: Some(since_ms),
        text: format!("{failures} of {name} failed"),
        cause,
        url: URL.to_owned(),
        step: STEP,
    })
}

/// A slice that rejected its last commands, after a deployment perhaps.
fn rejects(slice: &str, lines: &[&CommandLine]) -> Option<StackFault> {
    let decided = lines.iter().rev().filter_map(|line| match line.kind() {
        OutcomeKind::Malformed | OutcomeKind::KeyReused => None,
        kind => Some((line, kind)),
    });
    let rejected = decided.take_while(|(_, kind)| *kind == OutcomeKind::Rejected);
    let rejected: Vec<_> = rejected.map(|(line, _)| line).collect();
    let count = rejected.len() as u64;
    let first = rejected.last().filter(|_| count >= REJECTED_MIN)?;
    Some(StackFault {
        what: What::Slice,
        names: vec![slice.to_owned()],
        count,
        since_ms: Some(first.at_ms()),
        text: format!("{slice} rejected its last {count} commands"),
        cause: rejected.first()?.cause.clone(),
        url: URL.to_owned(),
        step: STEP,
    })
}

/// A slice of whose commands at least half met conflicts.
fn contended(slice: &str, lines: &[&CommandLine]) -> Option<StackFault> {
    let mut met = lines.iter().filter(|line| !line.conflicts.is_empty());
    let (all, count) = (lines.len() as u64, met.clone().count() as u64);
    if all < CONTENDED_MIN || count * 2 < all {
        return None;
    }
    Some(StackFault {
        what: What::Conflicts,
        names: vec![slice.to_owned()],
        count,
        since_ms: met.next().map(|line| line.at_ms()),
        text: format!("{count} of {all} commands of {slice} met conflicts"),
        cause: None,
        url: "/commands".to_owned(),
        step: "Look which boundaries are hot",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(slice: &str, outcome: &str, conflicts: usize) -> CommandLine {
        let line = serde_json::json!({
            "timestamp": "2026-01-01T00:00:00.000Z", "slice": slice, "outcome": outcome, "attempts": conflicts + 1,
            "duration_ms": 1, "requests": 1, "read_units": 0.5, "write_units": 1.0, "cause": "no <table>",
            "conflicts": vec!["bookId:b"; conflicts],
        });
        serde_json::from_value(line).expect("a line")
    }

    fn of_lend(outcomes: &[&str]) -> FunctionLines {
        let commands = outcomes.iter().map(|outcome| line("lend", outcome, 0)).collect();
        FunctionLines { commands, runs: Vec::new() }
    }

    fn texts(lines: &FunctionLines) -> Vec<String> {
        of(lines, |name| name != "index-events").into_iter().map(|fault| fault.line()).collect()
    }

    #[test]
    fn a_slice_is_not_well_if_a_command_failed_or_the_last_five_were_rejected() {
        for well in [
            &["accepted"][..],
            &["rejected"; 4],
            &["malformed", "key-reused", "scope-missing"],
            &[],
            &["rejected", "rejected", "rejected", "rejected", "accepted"],
        ] {
            assert_eq!(texts(&of_lend(well)), [""; 0], "{well:?}");
        }
        let mut lines = of_lend(&["accepted", "internal", "throttled"]);
        assert_eq!(texts(&lines), ["2 commands of lend failed: no <table>"]);
        lines.runs.push(RunLine {
            timestamp: "2026-01-01T00:00:01.000Z".to_owned(),
            failed_function: Some("lend".to_owned()),
            cause: Some("a panic".to_owned()),
            ..RunLine::default()
        });
        assert_eq!(texts(&lines), ["3 runs of lend failed: a panic"], "they ended the process");
        let last = [&["accepted"], &["rejected"; 4][..], &["malformed", "rejected"]].concat();
        assert_eq!(texts(&of_lend(&last)), ["lend rejected its last 5 commands: no <table>"]);
    }

    /// Each slice has a fault or is just below its limit, in each combination of the faults.
    #[test]
    fn each_fault_is_named_and_no_other() {
        for faults in 0..1_u32 << 4 {
            let has = |fault: u32| faults & (1 << fault) != 0;
            let (mut lines, mut expected) = (FunctionLines::default(), Vec::new());
            let runs = [None, Some("index-events")].into_iter().take(1 + usize::from(has(0)));
            lines.runs.extend(runs.map(|function| RunLine {
                failed_function: function.map(str::to_owned),
                cause: Some("no table".to_owned()),
                ..RunLine::default()
            }));
            let met = 9 + usize::from(has(1));
            lines.commands.extend((0..20).map(|n| line("a", "accepted", usize::from(n < met))));
            expected.extend(has(1).then_some("10 of 20 commands of a met conflicts"));
            lines.commands.push(line("b", if has(2) { "internal" } else { "rejected" }, 1));
            expected.extend(has(2).then_some("1 command of b failed: no <table>"));
            let rejected = 4 + usize::from(has(3));
            lines.commands.extend((0..rejected).map(|_| line("c", "rejected", 1)));
            expected.extend(has(3).then_some("c rejected its last 5 commands: no <table>"));
            expected.extend(has(0).then_some("1 run of index-events failed: no table"));
            assert_eq!(texts(&lines), expected, "{faults:b}");
        }
    }
}
