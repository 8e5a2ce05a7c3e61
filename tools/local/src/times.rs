//! The times of schedules, by the expressions of EventBridge Scheduler.

use std::time::Duration;

use chrono::{DateTime, Utc};
use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};

use crate::clock;

/// The times of a schedule.
#[derive(Clone, Debug)]
pub enum Times {
    /// At once, and then at this interval.
    Rate(Duration),
    /// The minutes that match, in UTC.
    Cron(Box<Cron>),
}

/// An expression that EventBridge Scheduler does not have, or that this machine does not support.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TimesError(String);

impl Times {
    /// Parses an expression: `rate(5 minutes)`, or `cron(0 8 ? * MON-FRI *)` with the six fields minute, hour, day of
    /// the month, month, day of the week, year.
    ///
    /// # Errors
    /// The expression is something else, such as `at(…)`.
    pub fn parse(expression: &str) -> Result<Self, TimesError> {
        let inner =
            |kind: &str| expression.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')');
        match (inner("rate"), inner("cron")) {
            (Some(rate), _) => parse_rate(rate),
            (_, Some(cron)) => parse_cron(cron),
            (None, None) => Err("write `rate(5 minutes)` or `cron(0 8 ? * MON-FRI *)`".to_owned()),
        }
        .map_err(|why| TimesError(format!("{expression}: {why}")))
    }

    /// The first time of a schedule that is made now; `None` if it has none.
    pub(crate) fn first(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self {
            Self::Rate(_) => Some(now),
            Self::Cron(_) => self.next(now),
        }
    }

    /// The first time after this one; `None` if this one was the last.
    pub(crate) fn next(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self {
            Self::Rate(rate) => after.checked_add_signed(chrono::Duration::from_std(*rate).ok()?),
            Self::Cron(cron) => cron.find_next_occurrence(&after, false).ok(),
        }
    }
}

fn parse_rate(rate: &str) -> Result<Times, String> {
    let (value, unit) = rate.split_once(' ').unwrap_or((rate, ""));
    let minutes = match unit.strip_suffix('s').unwrap_or(unit) {
        "minute" => 1,
        "hour" => 60,
        "day" => 24 * 60,
        _ => return Err("a rate is in minutes, hours or days".to_owned()),
    };
    match value.parse::<u32>() {
        Ok(value) if value > 0 => {
            Ok(Times::Rate(Duration::from_secs(60 * minutes * u64::from(value))))
        }
        _ => Err(format!("a rate is an integer from 1 on, not {value:?}")),
    }
}

fn parse_cron(cron: &str) -> Result<Times, String> {
    let fields: Vec<&str> = cron.split_whitespace().collect();
    let [minute, hour, day_of_month, month, day_of_week, year] = fields[..] else {
        let found = fields.len();
        return Err(format!(
            "has {found} fields, needs 6: minute, hour, day of the month, month, day of the week, year"
        ));
    };
    if (day_of_month == "?") == (day_of_week == "?") {
        return Err("write `?` for the day of the month or for the day of the week".to_owned());
    }
    // The last day of the week.
    let day_of_week = if day_of_week == "L" { "7" } else { day_of_week };
    // The parser has a field for seconds; the days of the week begin with Sunday as 1, and `0/10` is a range.
    let parser = CronParser::builder()
        .seconds(Seconds::Required)
        .year(Year::Required)
        .alternative_weekdays(true)
        .sloppy_ranges(true)
        .build();
    let cron = format!("0 {minute} {hour} {day_of_month} {month} {day_of_week} {year}");
    let cron = parser.parse(&cron).map_err(|error| error.to_string())?;
    if year == "*" && cron.find_next_occurrence(&clock::now(), false).is_err() {
        return Err("no time is like this".to_owned());
    }
    Ok(Times::Cron(Box::new(cron)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> DateTime<Utc> {
        format!("{text}:00Z").parse().expect("a time")
    }

    #[track_caller]
    fn check(expression: &str, times: &[&str]) {
        let parsed = Times::parse(expression).expect("an expression");
        let mut last = time("2024-06-23T00:00"); // a Sunday
        for expected in times {
            last = parsed.next(last).expect("a time");
            assert_eq!(last, time(expected), "{expression}");
        }
    }

    #[test]
    fn rates_and_crons_have_the_times_that_eventbridge_gives_them() {
        // A rate begins at once.
        let now = time("2024-06-23T00:00");
        assert_eq!(Times::Rate(Duration::from_secs(60)).first(now), Some(now));
        check("rate(1 minute)", &["2024-06-23T00:01", "2024-06-23T00:02"]);
        check("rate(5 minutes)", &["2024-06-23T00:05", "2024-06-23T00:10"]);
        check("rate(2 hours)", &["2024-06-23T02:00", "2024-06-23T04:00"]);
        check("rate(1 day)", &["2024-06-24T00:00", "2024-06-25T00:00"]);
        check("cron(15 10 * * ? *)", &["2024-06-23T10:15", "2024-06-24T10:15"]);
        check("cron(0/20 8-9 ? * MON-FRI *)", &["2024-06-24T08:00", "2024-06-24T08:20"]);
        // 1 is Sunday.
        check("cron(0 18 ? * 1,7 *)", &["2024-06-23T18:00", "2024-06-29T18:00"]);
        check("cron(0 18 ? * L *)", &["2024-06-29T18:00", "2024-07-06T18:00"]);
        check("cron(0 12 L * ? *)", &["2024-06-30T12:00", "2024-07-31T12:00"]);
        check("cron(0 9 1W * ? *)", &["2024-07-01T09:00", "2024-08-01T09:00", "2024-09-02T09:00"]);
        check("cron(0 9 ? * 2#1 *)", &["2024-07-01T09:00", "2024-08-05T09:00"]);
        check("cron(0 9 ? * 6L *)", &["2024-06-28T09:00", "2024-07-26T09:00"]);
        check("cron(0 0 1 JAN ? 2026-2027)", &["2026-01-01T00:00", "2027-01-01T00:00"]);
    }

    #[test]
    fn a_cron_ends_with_its_last_year() {
        let past = Times::parse("cron(0 0 1 1 ? 2023)").expect("an expression");
        assert_eq!(past.next(time("2024-06-23T00:00")), None);
    }

    #[test]
    fn an_invalid_expression_is_refused_with_the_way_out() {
        for (expression, why) in [
            ("at(2026-11-20T13:00:00)", "write `rate(5 minutes)` or `cron(0 8 ? * MON-FRI *)`"),
            ("rate(5)", "a rate is in minutes, hours or days"),
            ("rate(5 seconds)", "a rate is in minutes, hours or days"),
            ("rate(0 minutes)", "a rate is an integer from 1 on, not \"0\""),
            (
                "cron(0 8 * * MON)",
                "has 5 fields, needs 6: minute, hour, day of the month, month, day of the week, year",
            ),
            ("cron(0 8 * * * *)", "write `?` for the day of the month or for the day of the week"),
            ("cron(0 8 30 2 ? *)", "no time is like this"),
            ("cron(0 8 ? * ? *)", "write `?` for the day of the month or for the day of the week"),
        ] {
            let error = Times::parse(expression).expect_err("a refusal");
            assert_eq!(error.to_string(), format!("{expression}: {why}"));
        }
        assert!(Times::parse("cron(0 25 * * ? *)").is_err());
        assert!(Times::parse("cron(0 8 ? * XYZ *)").is_err());
    }
}
