//! The prices of what a stack uses.

/// When and where the prices held.
pub const PRICES_OF: &str = "list prices of us-east-1, November 2026";

/// A price.
#[derive(Debug)]
pub struct Price {
    /// The thing that is paid for.
    pub what: &'static str,
    /// Dollars for `amount` of it.
    pub dollars: f64,
    /// How many the price is for.
    pub amount: f64,
}

impl Price {
    const fn new(what: &'static str, dollars: f64, amount: f64) -> Self {
        Self { what, dollars, amount }
    }

    pub(super) fn of(&self, amount: f64) -> f64 {
        self.dollars * amount / self.amount
    }
}

/// Dollars for units of DynamoDB, on demand.
#[must_use]
pub fn of_units(read: f64, write: f64) -> f64 {
    READ.of(read) + WRITE.of(write)
}

pub(super) const ALARM: Price = Price::new("a metric that an alarm reads, a month", 0.10, 1.0);
pub(super) const METRIC: Price =
    Price::new("a metric of one's own, a month; by the hours in which it is sent", 0.30, 1.0);
pub(super) const DASHBOARD: Price = Price::new("a dashboard, a month", 3.0, 1.0);
pub(super) const KEY: Price = Price::new("a key of KMS, a month", 1.0, 1.0);
pub(super) const LOG: Price = Price::new("a gigabyte of log", 0.50, 1e9);
pub(super) const WRITE: Price =
    Price::new("a million write units of DynamoDB, on demand", 0.625, 1e6);
pub(super) const READ: Price =
    Price::new("a million read units of DynamoDB, on demand", 0.125, 1e6);
pub(super) const STORAGE: Price =
    Price::new("a gigabyte in tables and in their backups (0.25 + 0.20), a month", 0.45, 1e9);
pub(super) const INVOCATION: Price = Price::new("a million invocations of Lambda", 0.20, 1e6);
pub(super) const COMPUTE: Price =
    Price::new("a million gigabyte-seconds of Lambda, arm64", 13.3334, 1e6);
pub(super) const API: Price = Price::new("a million requests of the HTTP API", 1.0, 1e6);
pub(super) const BUS: Price = Price::new("a million events on the bus", 1.0, 1e6);
pub(super) const SCHEDULE: Price =
    Price::new("a million invocations of EventBridge Scheduler", 1.0, 1e6);
pub(super) const MACHINE: Price =
    Price::new("a million runs of an express state machine, below 100 ms", 1.0 + 0.104_2, 1e6);
pub(super) const QUEUE: Price = Price::new("a million requests to a FIFO queue", 0.50, 1e6);

/// All prices.
pub const PRICES: [&Price; 15] = [
    &ALARM,
    &METRIC,
    &DASHBOARD,
    &KEY,
    &LOG,
    &WRITE,
    &READ,
    &STORAGE,
    &INVOCATION,
    &COMPUTE,
    &API,
    &BUS,
    &SCHEDULE,
    &MACHINE,
    &QUEUE,
];
