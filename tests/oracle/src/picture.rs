//! The picture of contention in `docs/pictures`: how many commands commit at once, how many give up, and how long they
//! take, under rising loads.

use std::fmt::Write as _;

use crate::contention::{Curve, Ends, RATES};

/// The size of a panel in pixels, and the beginning of the first one.
const WIDTH: f64 = 200.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 50.0;
const TOP: f64 = 34.0;
/// From the beginning of one panel to the beginning of the next one.
const STEP: f64 = WIDTH + 56.0;
/// The colours of the curves, by the first word of their names.
const COLOURS: [(&str, &str); 4] =
    [("5", "#2a9d8f"), ("10", "#1d4ed8"), ("20", "#c2410c"), ("the", "#6b7280")];

/// One of the three figures of a load.
struct Panel {
    title: &'static str,
    /// The lines of the grid, by their labels and heights from 0 to 1.
    grid: [(&'static str, f64); 4],
    /// The height of a load in this panel, from 0 to 1.
    height: fn(&Ends) -> f64,
}

const PANELS: [Panel; 3] = [
    Panel {
        title: "committed at once",
        grid: [("0 %", 0.0), ("50 %", 0.5), ("75 %", 0.75), ("100 %", 1.0)],
        height: |ends| share(ends, ends.at_once()),
    },
    Panel {
        title: "gave up",
        grid: [("0 %", 0.0), ("4 %", 1.0 / 3.0), ("8 %", 2.0 / 3.0), ("12 %", 1.0)],
        height: |ends| share(ends, ends.gave_up()) / 0.12,
    },
    Panel {
        title: "99 of 100 ended within",
        grid: [("10 ms", 0.0), ("100 ms", 1.0 / 3.0), ("1 s", 2.0 / 3.0), ("10 s", 1.0)],
        height: |ends| (ends.p99_ms().max(10) as f64 / 10.0).log10() / 3.0,
    },
];

fn share(ends: &Ends, of: usize) -> f64 {
    of as f64 / ends.commands() as f64
}

/// One line for a curve: its figures as a title, and its line in each panel.
#[must_use]
pub fn curve(Curve { name, ends }: &Curve) -> String {
    let figures = ends.iter().map(|ends| {
        let percent = |count, digits| {
            let text = format!("{:.digits$}", 100.0 * share(ends, count));
            text.strip_suffix(".00").map(str::to_owned).unwrap_or(text)
        };
        let (at_once, gave_up) = (percent(ends.at_once(), 0), percent(ends.gave_up(), 2));
        format!("{at_once} %, {gave_up} %, {} ms", ends.p99_ms())
    });
    let figures = figures.collect::<Vec<_>>().join(" | ");
    let first = name.split(' ').next().unwrap_or_default();
    let colour = COLOURS.iter().find(|(of, _)| *of == first).map_or("black", |(_, colour)| colour);
    let dashes = if name.ends_with("fenced") { " stroke-dasharray=\"5 3\"" } else { "" };
    let lines = PANELS.iter().zip(0..).map(|(panel, n)| {
        let points = ends.iter().zip(0..).map(|(ends, rate)| {
            let (x, y) = (x_of(n, rate), y_of((panel.height)(ends)));
            format!("{x:.0},{y:.1}")
        });
        format!("<polyline points=\"{}\"/>", points.collect::<Vec<_>>().join(" "))
    });
    let lines = lines.collect::<String>();
    format!("<g stroke=\"{colour}\"{dashes}><title>{name}: {figures}</title>{lines}</g>")
}

fn x_of(panel: usize, rate: usize) -> f64 {
    LEFT + panel as f64 * STEP + WIDTH * rate as f64 / (RATES.len() - 1) as f64
}

fn y_of(height: f64) -> f64 {
    TOP + HEIGHT * (1.0 - height)
}

/// The whole picture.
#[must_use]
pub fn picture(curves: &[Curve]) -> String {
    let (width, height) = (LEFT + 3.0 * STEP - 30.0, TOP + HEIGHT + 84.0);
    let mut lines = vec![
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"11\">"
        ),
        "<title>Contention, by appends a second to one partition</title>".to_owned(),
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>".to_owned(),
    ];
    for (panel, n) in PANELS.iter().zip(0..) {
        let (left, right) = (x_of(n, 0), x_of(n, RATES.len() - 1));
        let mut line = format!(
            "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{}</text>",
            TOP - 14.0,
            panel.title
        );
        for (label, height) in panel.grid {
            let y = y_of(height);
            let _ = write!(
                line,
                "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                left - 6.0,
                y + 4.0
            );
        }
        for (rate, at) in RATES.iter().zip(0..) {
            let (x, y) = (x_of(n, at), TOP + HEIGHT + 16.0);
            let _ = write!(line, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{rate}</text>");
        }
        lines.push(line);
    }
    lines.push(format!(
        "<text x=\"{LEFT}\" y=\"{}\">appends a second to one partition</text>",
        TOP + HEIGHT + 34.0
    ));
    lines.push("<g fill=\"none\" stroke-width=\"1.6\">".to_owned());
    lines.extend(curves.iter().map(curve));
    lines.push("</g>".to_owned());
    let keys = [
        ("5 orders a second", COLOURS[0].1, ""),
        ("10 orders", COLOURS[1].1, ""),
        ("20 orders", COLOURS[2].1, ""),
        ("the appends alone", COLOURS[3].1, ""),
        ("fenced", "#444", " stroke-dasharray=\"5 3\""),
    ];
    for ((key, colour, dashes), at) in keys.into_iter().zip(0..) {
        let (x, y) = (LEFT + 145.0 * f64::from(at), TOP + HEIGHT + 64.0);
        lines.push(format!(
            "<path d=\"M{x} {y}h24\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>\
             <text x=\"{}\" y=\"{}\">{key}</text>",
            x + 30.0,
            y + 4.0
        ));
    }
    lines.push("</svg>\n".to_owned());
    lines.join("\n")
}
