//! Curves as SVG, each with its numbers as a table.

use std::fmt::Write as _;

use maud::{Markup, html};
use ringfence_cli::deployments::Deployment;
use ringfence_core::rfc3339;

use crate::frame::ago;
use crate::series::{PARTS, Parts};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 120.0;
/// Lines have the colours of so many classes, and then the first ones again.
const CLASSES: usize = 6;

/// A line of a picture: its name and its values, the oldest first.
pub(crate) type Line<'v> = (&'v str, &'v Parts);

/// The time of a picture, in milliseconds since 1970, and what was deployed in it.
pub(crate) struct Span<'d> {
    pub(crate) since_ms: u64,
    pub(crate) until_ms: u64,
    pub(crate) deployments: &'d [Deployment],
}

impl Span<'_> {
    /// When a part begins.
    fn begin(&self, part: usize) -> u64 {
        self.since_ms + (self.until_ms - self.since_ms) * part as u64 / PARTS as u64
    }

    /// Where a time is in the picture. The point of a part is the middle of its time.
    fn x(&self, at_ms: u64) -> f64 {
        let parts = at_ms.saturating_sub(self.since_ms) as f64 * PARTS as f64
            / (self.until_ms - self.since_ms).max(1) as f64;
        ((parts - 0.5) / (PARTS - 1) as f64 * WIDTH).clamp(0.0, WIDTH)
    }
}

/// A picture of lines with a heading. `unit` is what the values count. The line `bad` is red.
pub(crate) fn figure(
    title: &str,
    unit: &str,
    lines: &[Line<'_>],
    bad: Option<&str>,
    span: &Span<'_>,
) -> Markup {
    let class = |n: usize, name: &str| match bad {
        Some(bad) if bad == name => "bad".to_owned(),
        _ => format!("line-{}", n % CLASSES),
    };
    let most = lines.iter().flat_map(|(_, values)| values.iter()).fold(0.0, |a: f64, b| a.max(*b));
    html! {
        figure.curve {
            figcaption { strong { (title) } " " span.note { (unit) ", at most " (number(most)) } }
            @if most > 0.0 {
                svg viewBox="0 0 600 120" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                    @for (n, (name, values)) in lines.iter().enumerate() {
                        polyline class=(class(n, name)) points=(points(values, most)) {}
                    }
                    @for deployment in span.deployments {
                        @let x = format!("{:.1}", span.x(deployment.at_ms));
                        line.mark x1=(x) x2=(x) y1="0" y2="120" { title { (mark(deployment)) } }
                    }
                }
                p.note.ends { (ago(span.since_ms)) " " (ago(span.until_ms)) }
                ul.legend {
                    @for (n, (name, _)) in lines.iter().enumerate() { li class=(class(n, name)) { (name) } }
                    @if !span.deployments.is_empty() { li.mark { "deployed" } }
                }
                details {
                    summary { "Numbers of " (title) }
                    div.wide tabindex="0" role="region" aria-label={ "Numbers of " (title) } { (table(lines, span)) }
                }
            } @else { p.note { "None in this time." } }
        }
    }
}

/// The values as a small line without text.
pub(crate) fn spark(values: &Parts) -> Markup {
    let most = values.iter().fold(0.0, |a: f64, b| a.max(*b));
    html! {
        @if most > 0.0 {
            svg.spark viewBox="0 0 600 120" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
                polyline class="line-0" points=(points(values, most)) {}
            }
        }
    }
}

fn points(values: &Parts, most: f64) -> String {
    let mut points = String::new();
    // A value that is not known is a gap.
    for (n, value) in values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
        let x = WIDTH * n as f64 / (PARTS - 1) as f64;
        let y = HEIGHT - value / most * (HEIGHT - 4.0) - 2.0;
        let _ = write!(points, "{x:.0},{y:.0} ");
    }
    points
}

fn mark(deployment: &Deployment) -> String {
    format!("{}: {}", rfc3339(deployment.at_ms), deployment.line())
}

/// The parts in which a line has a value, and what was deployed, the newest first.
fn table(lines: &[Line<'_>], span: &Span<'_>) -> Markup {
    let mut rows = Vec::new();
    for n in (0..PARTS).filter(|n| lines.iter().any(|(_, values)| values[*n] > 0.0)) {
        let numbers = html! { @for (_, values) in lines { td.number { (number(values[n])) } } };
        rows.push((span.begin(n), numbers));
    }
    for deployment in span.deployments {
        let line = html! { td colspan=(lines.len()) { "deployed: " (deployment.line()) } };
        rows.push((deployment.at_ms, line));
    }
    rows.sort_by_key(|(at_ms, _)| *at_ms);
    html! {
        table.figures {
            thead { tr { th scope="col" { "From (UTC)" } @for (name, _) in lines { th scope="col" { (name) } } } }
            tbody {
                @for (at_ms, row) in rows.iter().rev() {
                    tr { th scope="row" { time { (rfc3339(*at_ms)) } } (row) }
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
        let functions = ["lend".to_owned()].into();
        let deployments = [Deployment { at_ms: 30_000, ended: "updated", functions }];
        let span = Span { since_ms: 0, until_ms: 60_000, deployments: &deployments };
        let lines = [("a&b", &values)];
        let figure = figure("<Commands>", "each", &lines, None, &span).into_string();
        assert!(figure.contains("0,60 10,118 "), "{figure}");
        assert!(figure.contains("600,2 \""), "{figure}");
        assert!(figure.contains("at most 3<") && figure.contains("a&amp;b"), "{figure}");
        let line = "1970-01-01T00:00:30.000Z: the stack was updated: lend";
        let mark = format!(r#"x1="300.0" x2="300.0" y1="0" y2="120"><title>{line}</title></line>"#);
        assert!(figure.contains(&mark) && figure.contains("<li class=\"mark\">"), "{figure}");
        let rows: Vec<_> = figure.split("<td").skip(1).map(|row| row.split('<').next()).collect();
        let deployed = " colspan=\"1\">deployed: the stack was updated: lend";
        let expected = [" class=\"number\">3", deployed, " class=\"number\">1.5"].map(Some);
        assert_eq!(rows, expected, "{figure}");
        assert_eq!([0, 500, 59_500, 60_000].map(|at_ms| span.x(at_ms)), [0.0, 0.0, WIDTH, WIDTH]);
        for (bad, class) in [(None, "line-0"), (Some("failed"), "bad")] {
            let shown = super::figure("Commands", "each", &[("failed", &values)], bad, &span);
            assert!(shown.into_string().contains(&format!("<li class=\"{class}\">failed")));
        }
        let rest = super::figure("Commands", "each", &[("a", &[0.0; PARTS])], None, &span);
        assert!(!rest.into_string().contains("svg"));
    }
}
