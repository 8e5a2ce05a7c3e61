//! Curves as SVG, each with its numbers as a table.

use std::fmt::Write as _;

use maud::{Markup, html};
use ringfence_core::rfc3339;

use crate::series::PARTS;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;
/// Lines have the colours of so many classes, and then the first ones again.
const CLASSES: usize = 8;

/// A line of a picture: its name and its values, the oldest first.
pub(crate) type Line<'v> = (&'v str, &'v [f64; PARTS]);

/// A picture of lines with a heading. `begins` are the times of the values, and `unit` is what they count.
pub(crate) fn figure(title: &str, unit: &str, lines: &[Line<'_>], begins: &[u64]) -> Markup {
    let most = lines.iter().flat_map(|(_, values)| values.iter()).fold(0.0, |a: f64, b| a.max(*b));
    html! {
        figure.curve {
            figcaption { strong { (title) } " " span.note { (unit) ", at most " (number(most)) } }
            @if most > 0.0 {
                svg viewBox="0 0 600 120" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                    @for (n, (_, values)) in lines.iter().enumerate() {
                        polyline class=(class(n)) points=(points(values, most)) {}
                    }
                }
                ul.legend { @for (n, (name, _)) in lines.iter().enumerate() { li class=(class(n)) { (name) } } }
                details {
                    summary { "Numbers of " (title) }
                    div.wide tabindex="0" role="region" aria-label={ "Numbers of " (title) } { (table(lines, begins)) }
                }
            } @else { p.note { "None in this time." } }
        }
    }
}

/// The values as a small line without text.
pub(crate) fn spark(values: &[f64; PARTS]) -> Markup {
    let most = values.iter().fold(0.0, |a: f64, b| a.max(*b));
    html! {
        @if most > 0.0 {
            svg.spark viewBox="0 0 600 120" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                polyline class="line-0" points=(points(values, most)) {}
            }
        }
    }
}

fn class(n: usize) -> String {
    format!("line-{}", n % CLASSES)
}

fn points(values: &[f64; PARTS], most: f64) -> String {
    let mut points = String::new();
    for (n, value) in values.iter().enumerate() {
        let x = WIDTH * n as f64 / (PARTS - 1) as f64;
        let y = HEIGHT - value / most * (HEIGHT - 4.0) - 2.0;
        let _ = write!(points, "{x:.0},{y:.0} ");
    }
    points
}

/// The parts in which a line has a value, the newest first.
fn table(lines: &[Line<'_>], begins: &[u64]) -> Markup {
    let is_some = |n: &usize| lines.iter().any(|(_, values)| values[*n] > 0.0);
    html! {
        table.figures {
            thead { tr { th scope="col" { "From (UTC)" } @for (name, _) in lines { th scope="col" { (name) } } } }
            tbody {
                @for n in (0..PARTS).rev().filter(is_some) {
                    tr {
                        th scope="row" { time { (rfc3339(begins[n])) } }
                        @for (_, values) in lines { td.number { (number(values[n])) } }
                    }
                }
            }
        }
    }
}

/// A number with at most two places.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_stays_in_its_picture_and_its_table_has_what_is_not_nothing() {
        let mut values = [0.0; PARTS];
        (values[0], values[59]) = (1.5, 3.0);
        let begins: Vec<_> = (0..PARTS as u64).collect();
        let figure = figure("<Commands>", "each", &[("a&b", &values)], &begins).into_string();
        assert!(figure.contains("0,60 10,118 "), "{figure}");
        assert!(figure.contains("600,2 \""), "{figure}");
        assert!(figure.contains("at most 3<") && figure.contains("a&amp;b"), "{figure}");
        assert_eq!(figure.matches("<td").count(), 2, "{figure}");
        let rest = super::figure("Commands", "each", &[("a", &[0.0; PARTS])], &begins);
        assert!(!rest.into_string().contains("svg"));
    }
}
