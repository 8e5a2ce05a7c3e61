//! What one command and one look need. Units are counted by the tests that are named; the rest is a model.

/// The modelled command: one event of 1 KB, as an order with a fence or two appends.
pub(super) const COMMAND_WRITE: f64 = 3.0;
pub(super) const COMMAND_READ: f64 = 1.0;
/// Of a page of the index; `shared/feed/tests/feed/costs.rs`.
pub(super) const INDEX_WRITE_PAGE: f64 = 1.0;
/// Of an event in the index: its progress, and its share of the page.
pub(super) const INDEX_WRITE_EVENT: f64 = 1.06;
pub(super) const INDEX_READ_EVENT: f64 = 1.0;
/// Of all views together, with one page of the index; `shared/views/tests/views/together.rs`.
pub(super) const VIEWS_READ: f64 = 3.0;
pub(super) const VIEWS_WRITE: f64 = 1.0;
/// Of an event that a view reads, in its log: once for all views.
pub(super) const BODY_READ: f64 = 0.5;
/// Entries of the index that one read unit brings, about.
pub(super) const ENTRIES_OF_UNIT: f64 = 80.0;
/// Of a view with new rows, besides the rows.
pub(super) const VIEW_READ: f64 = 1.0;
pub(super) const ROW_WRITE: f64 = 1.0;
pub(super) const ROW_READ: f64 = 1.0;
pub(super) const ROWS_OF_EVENT: f64 = 2.0;
/// Of a run of a reader of lanes; `shared/reactors/tests/reactors/costs.rs`.
pub(super) const LANES_READ: f64 = 3.5;
/// Of a minute for each due; `tests/acceptance/tests/cases/deadlines.rs`.
pub(super) const DUE_READ: f64 = 1.0;
/// Lines of the log, in bytes.
pub(super) const SLICE_LINE: f64 = 589.0 + 250.0;
pub(super) const INDEX_LINE: f64 = 350.0;
pub(super) const PUBLISH_LINE: f64 = 250.0;
pub(super) const VIEWS_LINE: f64 = 600.0;
pub(super) const SWEEP_LINE: f64 = 430.0;
/// An event in its log, with what is stored beside it, its entry of the index and its share of a progress, in bytes.
pub(super) const STORED: f64 = 1_100.0 + 300.0;
/// Milliseconds of an invocation.
pub(super) const SLICE_MS: f64 = 40.0;
pub(super) const INDEX_MS: f64 = 28.0;
pub(super) const PUBLISH_MS: f64 = 15.0;
pub(super) const VIEWS_MS: f64 = 60.0;
pub(super) const LANES_MS: f64 = 25.0;
pub(super) const IDLE_MS: f64 = 20.0;
/// Milliseconds for each further event that is handled together with another.
pub(super) const MORE_MS: f64 = 2.0;
/// Long polls of an idle queue a minute: five pollers that wait for 20 seconds each.
pub(super) const POLLS: f64 = 15.0;
/// Events of a tenth of a second are handled together, up to so many.
pub(super) const TOGETHER_MAX: f64 = 100.0;
