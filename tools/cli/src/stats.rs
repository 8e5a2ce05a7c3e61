//! `ringfence stats`: what commands did and cost, and where they had conflicts.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use ringfence_aws::Clock;
use ringfence_core::{rfc3339, visible};
use serde::Serialize;

use crate::commands::{CommandLine, CommandLines, LINES_MAX, OutcomeKind, UNKNOWN};
use crate::out::Output;

pub use ringfence_template::cost::{PRICES_OF, of_units as dollars_of_units};

/// The heat map divides the time into this many parts.
const PARTS: usize = 24;
/// The heat map has at most this many boundaries.
const BOUNDARIES_MAX: usize = 50;
/// At most this many principals are named.
const PRINCIPALS_MAX: usize = 20;
/// The principal of commands whose lines name none: their callers are unknown, or an older version wrote the lines.
const NOBODY: &str = "no principal";

#[derive(Args)]
#[command(after_help = "\
The heat map divides the time into 24 parts, the oldest first. For each part it shows a boundary's number of conflicts:
a dot for none, and + for ten or more.

Examples:
  ringfence stats --since 15m
  ringfence stats --stack ringfence-dev --since 24h --json")]
pub(crate) struct Arguments {
    /// The time to look back, such as 30s, 15m, 24h or 7d.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = since)]
    since: Duration,
    #[command(flatten)]
    commands: CommandLines,
    #[command(flatten)]
    output: Output,
}

/// The commands of a period.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// The beginning of the period: RFC 3339.
    pub since: String,
    /// Its end.
    pub until: String,
    /// Whether there were more command lines than are read at once.
    pub cut: bool,
    /// The slices by name.
    pub slices: BTreeMap<String, SliceStats>,
    /// The principals with the most commands, in descending order, each with the number.
    pub principals: Vec<(String, u64)>,
    /// The boundaries with the most conflicts, in descending order.
    pub conflicts: Vec<OfBoundary>,
}

/// What the commands of a slice did and cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SliceStats {
    /// All commands.
    pub commands: u64,
    /// Commands that a reaction gave.
    pub reactions: u64,
    /// Commands that the domain rejected.
    pub rejected: u64,
    /// Inputs that are not a command of the slice, too large for any log, or not allowed by the caller's token.
    pub malformed: u64,
    /// Commands under an idempotency key that belongs to another command.
    pub key_reused: u64,
    /// Valid commands that got no answer.
    pub failed: u64,
    /// How often they were decided again.
    pub retries: u64,
    /// Conflicts.
    pub conflicts: u64,
    /// Read units, in all.
    pub read_units: f64,
    /// Write units, in all.
    pub write_units: f64,
    /// The longest duration, in milliseconds.
    pub longest_ms: u64,
}

/// The conflicts on a boundary.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfBoundary {
    /// Its id.
    pub boundary: String,
    /// All of them.
    pub conflicts: u64,
    /// The number in each part of the period, the oldest first.
    pub parts: [u64; PARTS],
}

impl Stats {
    /// The statistics of command lines between two times, in milliseconds since 1970. If there were more lines
    /// than are read at once, the statistics begin and end with the lines that were read.
    pub fn of(lines: &[CommandLine], mut since_ms: u64, mut until_ms: u64) -> Self {
        let cut = lines.len() >= LINES_MAX;
        if let ([first, .., last], true) = (lines, cut) {
            (since_ms, until_ms) = (first.at_ms(), last.at_ms());
        }
        let mut slices: BTreeMap<String, SliceStats> = BTreeMap::new();
        let mut boundaries: BTreeMap<&str, [u64; PARTS]> = BTreeMap::new();
        let mut principals: BTreeMap<&str, u64> = BTreeMap::new();
        let length = until_ms.saturating_sub(since_ms).max(1);
        for line in lines {
            let of = slices.entry(line.slice.clone()).or_default();
            of.commands += 1;
            of.reactions += u64::from(line.by.is_some());
            *principals.entry(line.principal.as_deref().unwrap_or(NOBODY)).or_default() += 1;
            match line.kind() {
                OutcomeKind::Accepted => {}
                OutcomeKind::Rejected => of.rejected += 1,
                OutcomeKind::Malformed => of.malformed += 1,
                OutcomeKind::KeyReused => of.key_reused += 1,
                OutcomeKind::Failed => of.failed += 1,
            }
            of.retries += u64::from(line.attempts.saturating_sub(1));
            of.conflicts += line.conflicts.len() as u64;
            of.read_units += line.read_units;
            of.write_units += line.write_units;
            of.longest_ms = of.longest_ms.max(line.duration_ms);
            let part = line.at_ms().saturating_sub(since_ms) * PARTS as u64 / length;
            let part = usize::try_from(part).unwrap_or(PARTS).min(PARTS - 1);
            for boundary in &line.conflicts {
                boundaries.entry(boundary).or_default()[part] += 1;
            }
        }
        let of_boundary = |(boundary, parts): (&str, [u64; PARTS])| OfBoundary {
            boundary: boundary.to_owned(),
            conflicts: parts.iter().sum(),
            parts,
        };
        let mut conflicts: Vec<_> = boundaries.into_iter().map(of_boundary).collect();
        conflicts.sort_by_key(|of| std::cmp::Reverse(of.conflicts));
        conflicts.truncate(BOUNDARIES_MAX);
        let named = |(principal, commands): (&str, u64)| (principal.to_owned(), commands);
        let mut principals: Vec<_> = principals.into_iter().map(named).collect();
        principals.sort_by_key(|(_, commands)| std::cmp::Reverse(*commands));
        principals.truncate(PRINCIPALS_MAX);
        let (since, until) = (rfc3339(since_ms), rfc3339(until_ms));
        Self { since, until, cut, slices, principals, conflicts }
    }

    /// The statistics of the last `within`.
    ///
    /// # Errors
    /// The command lines can't be read.
    pub async fn read(commands: &CommandLines, within: Duration) -> Result<Self> {
        let now = Clock::system().now_ms();
        let since = now.saturating_sub(u64::try_from(within.as_millis()).unwrap_or(u64::MAX));
        Ok(Self::of(&commands.since(since).await?, since, now))
    }
}

impl SliceStats {
    /// The average of a total for each command.
    pub fn each(&self, of_all: f64) -> f64 {
        of_all / self.commands.max(1) as f64
    }
}

impl OfBoundary {
    /// Its row of the heat map.
    pub fn row(&self) -> String {
        let shown = |count: &u64| match count {
            0 => '.',
            1..=9 => char::from(b'0' + u8::try_from(*count).unwrap_or_default()),
            _ => '+',
        };
        self.parts.iter().map(shown).collect()
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commands: u64 = self.slices.values().map(|of| of.commands).sum();
        writeln!(f, "{commands} commands from {} to {}", self.since, self.until)?;
        if self.cut {
            writeln!(f, "There were more before or after; {LINES_MAX} were read.")?;
        }
        for (slice, of) in &self.slices {
            writeln!(
                f,
                "{}: {} commands, {} of them reactions, {} rejected, {} malformed, {} with a reused key, {} failed, {} conflicts, \
                 {:.2} read and {:.2} write units each, {} ms at most",
                visible(slice),
                of.commands,
                of.reactions,
                of.rejected,
                of.malformed,
                of.key_reused,
                of.failed,
                of.conflicts,
                of.each(of.read_units),
                of.each(of.write_units),
                of.longest_ms,
            )?;
        }
        for (principal, commands) in &self.principals {
            writeln!(f, "{commands:>6} for {}", visible(principal))?;
        }
        if self.conflicts.is_empty() {
            return writeln!(f, "No command met a conflict.");
        }
        writeln!(f, "Conflicts by boundary:")?;
        for of in &self.conflicts {
            writeln!(f, "{} {:>6} {}", of.row(), of.conflicts, visible(&of.boundary))?;
        }
        Ok(())
    }
}

pub(crate) async fn stats(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { since, commands, output } = arguments;
    ensure!(commands.are_known(), UNKNOWN);
    let stats = Stats::read(commands, *since).await?;
    Ok(output.end(&stats, true))
}

/// A time such as 15m.
pub fn since(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: give a number and s, m, h or d, such as 15m");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 24 * 3_600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = number.checked_mul(seconds).filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(timestamp: &str, outcome: &str, attempts: u32, conflicts: &[&str]) -> CommandLine {
        CommandLine {
            timestamp: timestamp.to_owned(),
            slice: "place-order".to_owned(),
            correlation_id: None,
            principal: (outcome == "accepted").then(|| "jwt:main:ada".to_owned()),
            by: (outcome == "rejected").then(|| "place-order".to_owned()),
            outcome: outcome.to_owned(),
            attempts,
            conflicts: conflicts.iter().map(|text| (*text).to_owned()).collect(),
            events: BTreeMap::new(),
            duration_ms: 7,
            requests: 2,
            read_units: 0.5,
            write_units: 6.0,
            cause: None,
        }
    }

    #[test]
    fn conflicts_are_counted_by_boundary_and_part_of_the_time() {
        let (since, until) = (1_719_100_800_000, 1_719_100_800_000 + 24_000);
        let lines = [
            line("2024-06-23T00:00:00.000Z", "accepted", 1, &[]),
            line("2024-06-23T00:00:01.000Z", "rejected", 3, &["productId:p", "productId:p"]),
            line("2024-06-23T00:00:23.999Z", "contention", 8, &["orderId:o"]),
            line("2024-06-23T00:00:23.999Z", "malformed", 0, &[]),
            line("2024-06-23T00:00:23.999Z", "too-large", 0, &[]),
            line("2024-06-23T00:00:23.999Z", "key-reused", 1, &[]),
            line("2024-06-23T00:00:23.999Z", "replay-ignored", 0, &[]),
        ];
        let stats = Stats::of(&lines, since, until);
        let of = &stats.slices["place-order"];
        assert_eq!(
            (of.commands, of.rejected, of.malformed, of.key_reused, of.failed),
            (7, 1, 2, 1, 1)
        );
        let text = stats.to_string();
        let counts = "7 commands, 1 of them reactions, 1 rejected, 2 malformed, 1 with a reused key, 1 failed, 3 conflicts";
        assert!(text.contains(counts), "{text}");
        let principals = "     6 for no principal\n     1 for jwt:main:ada\n";
        assert!(text.contains(principals), "{text}");
        assert_eq!((of.retries, of.conflicts, of.longest_ms), (9, 3, 7));
        let rows: Vec<_> = stats.conflicts.iter().map(|of| (&*of.boundary, of.row())).collect();
        assert_eq!(rows[0], ("productId:p", ".2......................".to_owned()));
        assert_eq!(rows[1], ("orderId:o", ".......................1".to_owned()));
    }

    #[test]
    fn a_time_has_a_number_and_a_unit() {
        assert_eq!(since("15m"), Ok(Duration::from_secs(900)));
        for wrong in ["", "m", "0s", "15", "-1h", "1w", "99999999999999999d", "1ü"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
