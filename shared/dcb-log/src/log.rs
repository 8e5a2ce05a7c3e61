//! The log itself: what its operations share.

use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::Client;
use ringfence::{Catalog, Envelope, Seen};
use ringfence_dynamo::{Clock, Meter, Retry, Table};

/// A cause further ahead of the clock than this is not believed: following it would push every later
/// event of its boundaries into the future. In milliseconds.
const AHEAD_MAX_MS: u64 = 60_000;

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

    /// The times of the next `events` events, one after another, in milliseconds since 1970; this is the
    /// first. It is later than the clock's, than this writer's last, than all it has read, than its cause,
    /// and than `raised` (an event or a fence that refused it), so that events of one boundary are in the
    /// order of their commits and effects follow their causes (rule 4).
    pub(crate) fn next_ms(
        &self,
        seen: Option<&Seen>,
        cause_ms: Option<u64>,
        raised: u64,
        events: usize,
    ) -> u64 {
        let now = self.clock.now_ms();
        let newest = seen.map_or(0, |seen| seen.newest_ms() + 1);
        let cause = cause_ms.filter(|cause_ms| {
            let believed = *cause_ms <= now.saturating_add(AHEAD_MAX_MS);
            if !believed {
                tracing::warn!(cause_ms, now_ms = now, "the cause lies too far ahead of the clock");
            }
            believed
        });
        let cause = cause.map_or(0, |cause_ms| cause_ms + 1);
        let floor = now.max(newest).max(cause).max(raised);
        let further = events.saturating_sub(1) as u64;
        let minted = |last: u64| floor.max(last.saturating_add(1));
        // What was raised is not remembered past the same bound: one fence with a head far ahead would
        // carry every fence that this writer meets with it. Their own heads keep their order.
        let bound = now.saturating_add(AHEAD_MAX_MS);
        let last = self.last_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| {
            Some((minted(last) + further).min(bound).max(last))
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
        assert_eq!(log.next_ms(None, None, 0, 1), 1_000);
        assert_eq!(log.next_ms(None, None, 0, 1), 1_001);
        clock.set(500);
        assert_eq!(log.next_ms(None, None, 0, 1), 1_002);
        assert_eq!(log.next_ms(None, None, 2_000, 1), 2_000);
        clock.set(5_000);
        assert_eq!(log.next_ms(None, None, 0, 3), 5_000);
        assert_eq!(log.next_ms(None, None, 0, 1), 5_003);
    }

    #[test]
    fn an_effect_follows_its_cause_unless_that_is_far_ahead() {
        let log = log(&Clock::fixed(1_000));
        assert_eq!(log.next_ms(None, Some(61_000), 0, 1), 61_001);
        let log = self::log(&Clock::fixed(1_000));
        assert_eq!(log.next_ms(None, Some(61_001), 0, 1), 1_000);
    }
}
