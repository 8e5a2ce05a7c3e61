//! The log itself: what its operations share.

use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::Client;
use ringfence::{Catalog, Envelope, Position, Seen};
use ringfence_dynamo::{Clock, Meter, Retry, Table};

/// A cause further ahead of the clock than this is not believed: following it would push every later
/// position of its fences into the future. In milliseconds.
const AHEAD_MAX_MS: u64 = 60_000;

/// An event log in one DynamoDB table.
pub struct DcbLog {
    pub(crate) table: Table,
    pub(crate) catalog: Catalog,
    pub(crate) clock: Clock,
    /// The time of this writer's last position, in milliseconds since 1970.
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

    /// The time of the next position: later than the clock's, than this writer's last, than all it
    /// has read, than its cause, and than `raised` (the head of a fence that refused it), so that
    /// commit order is position order and effects follow their causes.
    pub(crate) fn next_ms(
        &self,
        seen: Option<&Seen>,
        cause: Option<&Position>,
        raised: u64,
    ) -> u64 {
        let now = self.clock.now_ms();
        let after = |position: &Position| position.ms() + 1;
        let newest = seen.and_then(Seen::newest).map_or(0, after);
        let cause = cause.filter(|cause| {
            let believed = cause.ms() <= now.saturating_add(AHEAD_MAX_MS);
            if !believed {
                tracing::warn!(%cause, now_ms = now, "the cause lies too far ahead of the clock");
            }
            believed
        });
        let floor = now.max(newest).max(cause.map_or(0, after)).max(raised);
        let minted = |last: u64| floor.max(last.saturating_add(1));
        // What was raised is not remembered past the same bound: one fence with a head far ahead would
        // carry every fence that this writer meets with it. Their own heads keep their order.
        let bound = now.saturating_add(AHEAD_MAX_MS);
        let last = self.last_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, |last| {
            Some(minted(last).min(bound).max(last))
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

    fn position(ms: u64) -> Position {
        Position::try_from(format!("{ms:013}-x")).expect("13 digits")
    }

    #[test]
    fn time_never_stands_still_nor_goes_back() {
        let clock = Clock::fixed(1_000);
        let log = log(&clock);
        assert_eq!(log.next_ms(None, None, 0), 1_000);
        assert_eq!(log.next_ms(None, None, 0), 1_001);
        clock.set(500);
        assert_eq!(log.next_ms(None, None, 0), 1_002);
        assert_eq!(log.next_ms(None, None, 2_000), 2_000);
        clock.set(5_000);
        assert_eq!(log.next_ms(None, None, 0), 5_000);
    }

    #[test]
    fn an_effect_follows_its_cause_unless_that_is_far_ahead() {
        let log = log(&Clock::fixed(1_000));
        assert_eq!(log.next_ms(None, Some(&position(61_000)), 0), 61_001);
        let log = self::log(&Clock::fixed(1_000));
        assert_eq!(log.next_ms(None, Some(&position(61_001)), 0), 1_000);
    }
}
