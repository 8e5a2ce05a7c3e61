//! Slices and functions that fail, and slices whose commands meet conflicts.

use std::collections::BTreeMap;

use super::finding::{
    COMMANDS_MS, CONTENDED_MIN, REJECTED_MIN, StackFault, StackVerdict, What, counted,
};
use super::sources::VerdictSources;
use crate::commands::{CommandLine, FunctionLines, OutcomeKind, RunLine};
use crate::stats::{SliceStats, Stats};

const UNNAMED: &str = "commands, whose lines are named with --log-group, --logs or --stack";
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
            verdict.findings = of(&lines, since_ms, now_ms);
            verdict.unknown.extend(lines.are_cut().then_some(CUT));
        }
        Err(error) => verdict.unreadable("lines of commands", "/commands", &error),
    }
    verdict
}

/// The functions that failed, then the slices.
fn of(
    FunctionLines { commands, runs }: &FunctionLines,
    since_ms: u64,
    now_ms: u64,
) -> Vec<StackFault> {
    let mut failures = BTreeMap::<_, Vec<_>>::new();
    for run in runs {
        if let Some(function) = &run.failed_function {
            failures.entry(&**function).or_default().push(run);
        }
    }
    let mut lines = BTreeMap::<_, Vec<_>>::new();
    for line in commands {
        lines.entry(&*line.slice).or_default().push(line);
    }
    let slices = Stats::of(commands, since_ms, now_ms).slices;
    let failed = failures.into_iter().filter_map(|(function, runs)| fails(function, &runs));
    let slices = slices.iter().flat_map(|(slice, of)| {
        let lines = lines.get(&**slice).map(Vec::as_slice).unwrap_or_default();
        [of_slice(slice, of, lines), contended(slice, lines)]
    });
    failed.chain(slices.flatten()).collect()
}

/// A function whose runs failed.
fn fails(function: &str, runs: &[&RunLine]) -> Option<StackFault> {
    let (count, since_ms) = (runs.len() as u64, Some(runs.first()?.at_ms()));
    let why = runs.last()?.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
    Some(StackFault {
        what: What::Function,
        name: function.to_owned(),
        count,
        since_ms,
        text: format!("{} of {function} failed{why}", counted(count, "run", "runs")),
        url: "/dead-letters".to_owned(),
        step: "Mend the cause, and look whether it left dead letters",
    })
}

/// A slice with failed commands, or one that rejects every command.
fn of_slice(slice: &str, of: &SliceStats, lines: &[&CommandLine]) -> Option<StackFault> {
    let failed = lines.iter().find(|line| line.kind() == OutcomeKind::Failed);
    let (count, since_ms, text) = if let Some(line) = failed {
        let what = counted(of.failed, "command", "commands");
        let why = line.cause.as_ref().unwrap_or(&line.outcome);
        (of.failed, Some(line.at_ms()), format!("{what} of {slice} failed: {why}"))
    } else if of.rejected == of.commands && of.rejected >= REJECTED_MIN {
        (of.rejected, None, format!("{slice} rejected all of its {} commands", of.rejected))
    } else {
        return None;
    };
    let (name, url, step) = (slice.to_owned(), "/commands".to_owned(), "Look at the commands");
    Some(StackFault { what: What::Slice, name, count, since_ms, text, url, step })
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
        name: slice.to_owned(),
        count,
        since_ms: met.next().map(|line| line.at_ms()),
        text: format!("{count} of {all} commands of {slice} met conflicts"),
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
        of(lines, 0, 1).into_iter().map(|fault| fault.text).collect()
    }

    #[test]
    fn a_slice_is_not_well_if_a_command_failed_or_all_were_rejected() {
        for well in [
            &["accepted"][..],
            &["rejected"; 4],
            &["malformed", "key-reused", "scope-missing"],
            &[],
            &["rejected", "rejected", "rejected", "rejected", "accepted"],
        ] {
            assert_eq!(texts(&of_lend(well)), [""; 0], "{well:?}");
        }
        let failed = texts(&of_lend(&["accepted", "internal", "throttled"]));
        assert_eq!(failed, ["2 commands of lend failed: no <table>"]);
        assert_eq!(texts(&of_lend(&["rejected"; 5])), ["lend rejected all of its 5 commands"]);
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
            expected.extend(has(0).then_some("1 run of index-events failed: no table"));
            let met = 9 + usize::from(has(1));
            lines.commands.extend((0..20).map(|n| line("a", "accepted", usize::from(n < met))));
            expected.extend(has(1).then_some("10 of 20 commands of a met conflicts"));
            lines.commands.push(line("b", if has(2) { "internal" } else { "rejected" }, 1));
            expected.extend(has(2).then_some("1 command of b failed: no <table>"));
            let rejected = 4 + usize::from(has(3));
            lines.commands.extend((0..rejected).map(|_| line("c", "rejected", 1)));
            expected.extend(has(3).then_some("c rejected all of its 5 commands"));
            assert_eq!(texts(&lines), expected, "{faults:b}");
        }
    }
}
