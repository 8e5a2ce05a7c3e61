//! What one command and one look need. Units are counted by the tests that are named; the rest is a model.

/// The modelled command: one event of 1 KB, as an order with a fence or two appends.
pub(super) const COMMAND_WRITE: f64 = 3.0;
pub(super) const COMMAND_READ: f64 = 1.0;
/// Of an event in the index: its progress; `shared/feed/tests/feed/costs.rs`.
pub(super) const INDEX_EVENT: f64 = 1.0;
/// Of a page of the index, of which one in nine is refused: it is looked for, put and settled;
/// `shared/feed/tests/feed/shards.rs`.
pub(super) const INDEX_WRITE_PAGE: f64 = 1.11;
pub(super) const INDEX_READ_PAGE: f64 = 1.7;
/// Of an event in a page of many.
pub(super) const INDEX_WRITE_ENTRY: f64 = 0.06;
/// Of all views together, with one page of the index; `shared/views/tests/views/warm.rs`.
pub(super) const VIEWS_READ: f64 = 0.5;
pub(super) const VIEWS_WRITE: f64 = 1.0;
/// Of an event that a view reads, in its log: once for all views.
pub(super) const BODY_READ: f64 = 0.5;
/// Entries of the index that one read unit brings, about.
pub(super) const ENTRIES_OF_UNIT: f64 = 80.0;
pub(super) const ROW_WRITE: f64 = 1.0;
pub(super) const ROW_READ: f64 = 0.5;
pub(super) const ROWS_OF_EVENT: f64 = 2.0;
/// Of a run of a reader of lanes; `shared/reactors/tests/reactors/costs.rs`.
pub(super) const LANES_READ: f64 = 3.5;
/// Of a minute for each due; `tests/acceptance/tests/cases/deadlines.rs`.
pub(super) const DUE_READ: f64 = 1.0;
/// Lines of the log, in bytes: of a command (`shared/lambda/src/slice/telemetry.rs`), of its access to the API, and of
/// a run of all views (`shared/views/tests/views/warm.rs`) with its span and two views.
pub(super) const SLICE_LINE: f64 = 483.0;
pub(super) const ACCESS_LINE: f64 = 118.0;
pub(super) const VIEWS_LINE: f64 = 372.0;
pub(super) const SWEEP_LINE: f64 = 430.0;
/// An event in its log, with what is stored beside it, its entry of the index and its share of a progress, in bytes.
pub(super) const STORED: f64 = 1_100.0 + 300.0;
/// Milliseconds of an invocation: those of its requests, four to read and eight to write, one after another, and of the
/// processor. index-events sends two and two, and project-views three and two.
pub(super) const SLICE_MS: f64 = 40.0;
pub(super) const INDEX_MS: f64 = 32.0;
pub(super) const PUBLISH_MS: f64 = 15.0;
pub(super) const VIEWS_MS: f64 = 44.0;
pub(super) const LANES_MS: f64 = 25.0;
pub(super) const IDLE_MS: f64 = 20.0;
/// Milliseconds for each further event that is handled together with another.
pub(super) const MORE_MS: f64 = 2.0;
/// Long polls of an idle queue a minute: five pollers that wait for 20 seconds each.
pub(super) const POLLS: f64 = 15.0;
/// Events of a tenth of a second of one shard are handled together, up to so many.
pub(super) const TOGETHER_SECONDS: f64 = 0.1;
pub(super) const TOGETHER_MAX: f64 = 100.0;
/// A table begins with so many shards, and one takes so many write units a second. All pages of the index are in one.
pub(super) const SHARDS_MIN: f64 = 4.0;
pub(super) const SHARD_WRITE: f64 = 1_000.0;

/// How many events of a stream with so many a second are handled together, on average. They come at random, and a batch
/// has at least one.
pub(super) fn together(events_a_second: f64) -> f64 {
    let expected = events_a_second * TOGETHER_SECONDS;
    if expected > 0.0 { (expected / -(-expected).exp_m1()).clamp(1.0, TOGETHER_MAX) } else { 1.0 }
}
