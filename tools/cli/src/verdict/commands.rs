//! Slices whose commands fail.

use std::collections::BTreeMap;

use super::finding::{
    COMMANDS_MS, REJECTED_MIN, StackFault, StackVerdict, VerdictSources, What, counted,
};
use crate::commands::{CommandLine, LINES_MAX, OutcomeKind};
use crate::stats::Stats;

const UNNAMED: &str = "commands, whose lines are named with --log-group, --logs or --stack";
const CUT: &str =
    "some commands of the last 15 minutes, because there are more than are read at once";

pub(super) async fn find(sources: &VerdictSources<'_>, now_ms: u64) -> StackVerdict {
    if !sources.commands.are_known() {
        return StackVerdict { unknown: vec![UNNAMED], ..StackVerdict::default() };
    }
    let mut verdict = StackVerdict::default();
    let since_ms = now_ms.saturating_sub(COMMANDS_MS);
    match sources.commands.since(since_ms).await {
        Ok(lines) => {
            verdict.findings = of(&lines, since_ms, now_ms);
            verdict.unknown.extend((lines.len() >= LINES_MAX).then_some(CUT));
        }
        Err(error) => verdict.unreadable("lines of commands", "/commands", &error),
    }
    verdict
}

/// The slices with failed commands, and those that reject every command.
fn of(lines: &[CommandLine], since_ms: u64, now_ms: u64) -> Vec<StackFault> {
    let mut first = BTreeMap::new();
    for line in lines.iter().filter(|line| line.kind() == OutcomeKind::Failed) {
        first.entry(&*line.slice).or_insert(line);
    }
    let stats = Stats::of(lines, since_ms, now_ms);
    let of_slice = |(slice, of): (String, crate::stats::SliceStats)| {
        let (count, since_ms, text) = if let Some(line) = first.get(&*slice) {
            let what = counted(of.failed, "command", "commands");
            let why = line.cause.as_ref().unwrap_or(&line.outcome);
            (of.failed, Some(line.at_ms()), format!("{what} of {slice} failed: {why}"))
        } else if of.rejected == of.commands && of.rejected >= REJECTED_MIN {
            let text = format!("{slice} rejected all of its {} commands", of.rejected);
            (of.rejected, None, text)
        } else {
            return None;
        };
        let (url, step) = ("/commands".to_owned(), "Look at the commands");
        Some(StackFault { what: What::Slice, name: slice, count, since_ms, text, url, step })
    };
    stats.slices.into_iter().filter_map(of_slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(outcomes: &[&str]) -> Vec<CommandLine> {
        let line = |outcome: &&str| {
            serde_json::from_value(serde_json::json!({
                "timestamp": "2026-01-01T00:00:00.000Z", "slice": "lend", "outcome": outcome, "attempts": 1,
                "duration_ms": 1, "requests": 1, "read_units": 0.5, "write_units": 1.0, "cause": "no <table>",
            }))
        };
        outcomes.iter().map(line).collect::<Result<_, _>>().expect("lines")
    }

    #[test]
    fn a_slice_is_not_well_if_a_command_failed_or_all_were_rejected() {
        let text = |outcomes: &[&str]| {
            let found = of(&lines(outcomes), 0, 1);
            found.first().map(|finding| (finding.count, finding.text.clone()))
        };
        for well in [
            &["accepted"][..],
            &["rejected"; 4],
            &["malformed", "key-reused", "scope-missing"],
            &[],
        ] {
            assert_eq!(text(well), None, "{well:?}");
        }
        let failed = (2, "2 commands of lend failed: no <table>".to_owned());
        assert_eq!(text(&["accepted", "internal", "throttled"]), Some(failed));
        let rejected = (5, "lend rejected all of its 5 commands".to_owned());
        assert_eq!(text(&["rejected"; 5]), Some(rejected));
        assert_eq!(text(&["rejected", "rejected", "rejected", "rejected", "accepted"]), None);
    }
}
