//! The log itself: what its operations share.

use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::Client;
use ringfence::{AHEAD_MAX_MS, Catalog, Envelope};
use ringfence_dynamo::{Clock, Meter, Retry, Table};

/// An event log in one DynamoDB table.
pub struct DcbLog {
    pub(crate) table: Table,
    pub(crate) catalog: Catalog,
    pub(crate) clock: Clock,
    /// The time of this writer's last event, in milliseconds since 1970.
    last_ms: AtomicU64,
}

impl DcbLog {
    /// The log in `table`, whose events `catalog` declares. The client's own retries must be off
    /// ([`ringfence_dynamo::client_from_env`]), so that every attempt is counted once.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>, catalog: Catalog, clock: Clock) -> Self {
        Self { table: Table::new(client, table), catalog, clock, last_ms: AtomicU64::new(0) }
    }

    /// What this log's requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.meter()
    }

    /// Where this log has the time and its ids from.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How long and how often to try on behalf of a command.
    pub(crate) fn retry(&self, envelope: &Envelope) -> Retry {
        Retry::of(envelope, &self.clock)
    }

    /// The first of so many times one after another, in milliseconds since 1970: not before `floor`, and later than
    /// this writer's last (rule 4). `now` is the clock's time.
    pub(crate) fn next_ms(&self, now: u64, floor: u64, events: usize) -> u64 {
        let minted = |last: u64| floor.max(last.saturating_add(1));
        // What was raised is not remembered past the same bound: one fence with a head far ahead would
        // carry every fence that this writer meets with it. Their own heads keep their order.
        let bound = now.saturating_add(AHEAD_MAX_MS);
        let further = events.saturating_sub(1) as u64;
        let last = self.last_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| {
            Some(minted(last).saturating_add(further).min(bound).max(last))
        });
        minted(last.unwrap_or_else(|last| last))
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::config::{BehaviorVersion, Config};

    use super::*;

    fn log(clock: &Clock) -> DcbLog {
        let config = Config::builder().behavior_version(BehaviorVersion::latest()).build();
        let catalog = Catalog::new("none", []).expect("nothing contradicts nothing");
        DcbLog::new(Client::from_conf(config), "events", catalog, clock.clone())
    }

    #[test]
    fn time_never_stands_still_nor_goes_back() {
        let clock = Clock::fixed(1_000);
        let log = log(&clock);
        let next = |floor, events| log.next_ms(clock.now_ms(), floor, events);
        assert_eq!(next(1_000, 1), 1_000);
        assert_eq!(next(1_000, 1), 1_001);
        assert_eq!(next(500, 1), 1_002);
        assert_eq!(next(2_000, 1), 2_000);
        assert_eq!(next(5_000, 3), 5_000);
        assert_eq!(next(5_000, 1), 5_003);
        // What was far ahead is followed once.
        assert_eq!(next(9_000_000, 1), 9_000_000);
        assert_eq!(next(1_000, 1), 1_000 + AHEAD_MAX_MS + 1);
    }
}
