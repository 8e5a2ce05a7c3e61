//! A time axis that breaks where nothing happens for long, so that milliseconds and days fit one picture.

/// The width of the axis in units of its picture.
pub(crate) const WIDTH: u64 = 1_000;
/// A shorter gap is never left out, in milliseconds.
const LONG_MIN_MS: u64 = 1_000;
/// A gap is left out if it is so many times as long as all shorter ones together. To scale they would be hard to see.
const LONG_TIMES: u64 = 20;
/// The width of a break, unless the breaks together would take more than half of the axis.
const BREAK: u64 = 40;

/// The axis of some times.
pub(crate) struct Axis {
    /// The times, in milliseconds since 1970, each with its place, in order.
    places: Vec<(u64, u64)>,
    long_min_ms: u64,
}

impl Axis {
    /// The axis of these times, in milliseconds since 1970, in any order.
    pub(crate) fn of(times: impl IntoIterator<Item = u64>) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_unstable();
        times.dedup();
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        let mut sorted: Vec<_> = gaps.clone().collect();
        sorted.sort_unstable();
        let (mut span, mut long_min_ms) = (0_u64, u64::MAX);
        for gap in &sorted {
            if span > 0 && *gap >= LONG_MIN_MS && *gap / LONG_TIMES > span {
                long_min_ms = *gap;
                break;
            }
            span = span.saturating_add(*gap);
        }
        let breaks = sorted.iter().filter(|gap| **gap >= long_min_ms).count() as u64;
        let broken = BREAK.min((WIDTH / 2).checked_div(breaks).unwrap_or(0));
        let left = u128::from(WIDTH - broken * breaks);
        // The rest of the width is in proportion to the time before a place, without the breaks.
        let (mut passed, mut broke) = (0_u64, 0);
        let scaled = |passed: u64| {
            let place = u128::from(passed) * left / u128::from(span.max(1));
            u64::try_from(place).unwrap_or(WIDTH)
        };
        let mut places = Vec::with_capacity(times.len());
        places.extend(times.first().map(|first| (*first, 0)));
        for (gap, at) in gaps.zip(times.iter().skip(1)) {
            match gap >= long_min_ms {
                true => broke += broken,
                false => passed += gap,
            }
            places.push((*at, scaled(passed) + broke));
        }
        Self { places, long_min_ms }
    }

    /// The place of one of its times, from 0 to [`WIDTH`].
    pub(crate) fn place(&self, at_ms: u64) -> u64 {
        let found = self.places.binary_search_by_key(&at_ms, |(at, _)| *at);
        found.map_or(0, |found| self.places[found].1)
    }

    /// Whether the axis breaks between two times that follow one another.
    pub(crate) fn breaks(&self, before_ms: u64, after_ms: u64) -> bool {
        after_ms.saturating_sub(before_ms) >= self.long_min_ms
    }
}

/// A duration for people, with its two largest units.
pub(crate) fn duration(ms: u64) -> String {
    let two = |large: u64, unit: &str, small: u64, smaller: &str| match small {
        0 => format!("{large} {unit}"),
        small => format!("{large} {unit} {small} {smaller}"),
    };
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 if ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
        1_000..60_000 => format!("{}.{:03} s", ms / 1_000, ms % 1_000),
        60_000..3_600_000 => two(ms / 60_000, "min", ms % 60_000 / 1_000, "s"),
        3_600_000..86_400_000 => two(ms / 3_600_000, "h", ms % 3_600_000 / 60_000, "min"),
        _ => {
            let days = ms / 86_400_000;
            two(days, if days == 1 { "day" } else { "days" }, ms % 86_400_000 / 3_600_000, "h")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaps from 1 ms to a year, in every order of five.
    #[test]
    fn later_times_are_further_right_and_what_is_not_a_break_keeps_its_scale() {
        const GAPS: [u64; 6] = [1, 40, 999, 1_000, 900_000, 31_536_000_000];
        for n in 0..GAPS.len().pow(5) {
            let gaps = (0..5).map(|digit| GAPS[n / GAPS.len().pow(digit) % GAPS.len()]);
            let times: Vec<_> = [0]
                .into_iter()
                .chain(gaps.scan(0, |at, gap| {
                    *at += gap;
                    Some(*at)
                }))
                .collect();
            let axis = Axis::of(times.iter().rev().copied());
            let places: Vec<_> = times.iter().map(|at| axis.place(*at)).collect();
            assert!(places.is_sorted() && places[5] <= WIDTH && places[0] == 0, "{places:?}");
            let pairs = times.windows(2).zip(places.windows(2));
            let (mut shown, mut width) = (0, 0);
            for (time, place) in pairs.clone() {
                if !axis.breaks(time[0], time[1]) {
                    (shown, width) = (shown + time[1] - time[0], width + place[1] - place[0]);
                }
            }
            assert!(width * 2 >= WIDTH - 5, "the breaks take at most half: {times:?} {places:?}");
            for (time, place) in pairs {
                let gap = time[1] - time[0];
                let is = axis.breaks(time[0], time[1]);
                assert!(!is || gap >= LONG_MIN_MS && gap / LONG_TIMES > shown, "{times:?}");
                let scaled = gap * width / shown;
                assert!(is || scaled.abs_diff(place[1] - place[0]) <= 6, "{times:?} {places:?}");
            }
        }
        assert_eq!(Axis::of([]).place(7), 0);
    }

    #[test]
    fn a_duration_has_its_two_largest_units() {
        for (ms, text) in [
            (999, "999 ms"),
            (1_025, "1.025 s"),
            (15_000, "15 s"),
            (60_000, "1 min"),
            (3_599_999, "59 min 59 s"),
            (7_260_000, "2 h 1 min"),
            (90_000_000, "1 day 1 h"),
            (172_800_000, "2 days"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }
}
