//! The memory of the stack's processes: what each has in the second half of a run, it has in the first half already.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::process;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// A process may grow by this share, in percent, and by so many kilobytes.
const GROWTH_PERCENT: u64 = 25;
const GROWTH_KB: u64 = 16 * 1_024;
/// The name of this process, which has everything but the functions, and by how much it may grow: it keeps the last
/// 10,000 notices, with their events.
const STACK: &str = "the stack";
const STACK_GROWTH_KB: u64 = 192 * 1_024;

/// The most that a process of each function has had, in kilobytes, in each half.
pub(super) struct Memory {
    half: Instant,
    most: BTreeMap<String, [u64; 2]>,
}

impl Memory {
    pub(super) fn new(time: Duration) -> Self {
        Self { half: Instant::now() + time / 2, most: BTreeMap::new() }
    }

    /// Looks until the end.
    pub(super) async fn watch(&mut self, end: Instant) {
        while Instant::now() < end {
            let half = usize::from(Instant::now() > self.half);
            for (name, kilobytes) in processes() {
                let most = &mut self.most.entry(name).or_default()[half];
                *most = kilobytes.max(*most);
            }
            sleep(PAUSE).await;
        }
    }

    /// Checks that no process has grown. Returns the memory of the largest ones.
    pub(super) fn check(&self) -> Result<String> {
        let grown = self.most.iter().filter(|(name, [first, second])| {
            let more = if *name == STACK { STACK_GROWTH_KB } else { GROWTH_KB };
            // A function that was not used in the first half says nothing.
            *first > 0 && *second > first + first * GROWTH_PERCENT / 100 + more
        });
        let grown: Vec<_> = grown.map(|(name, [a, b])| format!("{name}: {a} KB, {b} KB")).collect();
        ensure!(
            grown.is_empty(),
            "memory in the first and in the second half: {}",
            grown.join("; ")
        );
        let megabytes = |name: &str| {
            let [first, second] = self.most.get(name).copied().unwrap_or_default();
            format!("{} MB, then {} MB", first / 1_024, second / 1_024)
        };
        let functions = self.most.iter().filter(|(name, _)| *name != STACK);
        let largest = functions.max_by_key(|(_, most)| most[1]).map_or("", |(name, _)| name);
        Ok(format!(
            "memory of {STACK} {}, of {largest}, the largest function, {}",
            megabytes(STACK),
            megabytes(largest)
        ))
    }
}

/// This process and the functions, with the kilobytes of each in memory. It reads what Linux says of processes.
fn processes() -> Vec<(String, u64)> {
    let own = process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of = processes.filter_map(|entry| {
        let path = entry.path();
        let status = fs::read_to_string(path.join("status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next().map(str::to_owned)
        };
        let kilobytes = field("VmRSS:")?.parse().ok()?;
        if entry.file_name().to_str() == Some(&own) {
            return Some((STACK.to_owned(), kilobytes));
        }
        if field("PPid:")? != own {
            return None;
        }
        let line = fs::read(path.join("cmdline")).ok()?;
        let name = String::from_utf8_lossy(line.split(|byte| *byte == 0).next()?).into_owned();
        // A process that has just been forked is a copy of this one.
        (Some(&name) != env::args().next().as_ref()).then_some((name, kilobytes))
    });
    of.collect()
}
