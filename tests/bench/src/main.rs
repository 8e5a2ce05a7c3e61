//! `cargo bench-all [case…]`: the cost of Ringfence's own code, beside bare calls of the SDK and of serde. The store
//! repeats itself, so the figures are the client's. It takes a few minutes, most of them for valgrind, which counts
//! instructions if it is installed.

extern crate ringfence_core as ringfence; // the derive macros use this name

mod bare;
mod commands;
mod instructions;
mod large;
mod measure;
mod reactions;
mod store;
mod tls;
mod upcasts;

use std::env;
use std::process::ExitCode;

use measure::{Case, Cost, Side, Spread};

/// A case's name and its preparation.
type Named = (&'static str, fn() -> Case);

const CASES: [Named; 10] = [
    ("add-product", commands::add_product),
    ("place-order, 2 products", commands::place_order),
    ("change-product-name, warm", commands::change_product_name_warm),
    ("add-product over TLS", commands::add_product_over_tls),
    ("publish-events, record to entry", reactions::publish),
    ("index-events, 100 partitions", reactions::index_events),
    ("replay, 4 pages of 100", reactions::replay),
    ("project-views, orders", reactions::project),
    ("rebuild, orders", reactions::rebuild),
    ("upcast, version 1 to 4", upcasts::chain_of_three),
];
/// Ringfence.
const OURS: &str = "ringfence";
/// Only the SDK and serde.
const BARE: &str = "bare";
/// Only the same requests, sent in Ringfence's way.
const FLOOR: &str = "floor";
const HEAD: [&str; 9] = [
    "what, and of what each",
    "by",
    "a second",
    "µs, median (least to most)",
    "instructions",
    "allocations",
    "bytes allocated",
    "requests",
    "units read / written",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [instructions::CHILD, case, side] = arguments[..] {
        under_count(case, side);
        return ExitCode::SUCCESS;
    }
    if let ["large", events] = arguments[..]
        && let Ok(events) = events.parse()
    {
        large::rebuild(events);
        return ExitCode::SUCCESS;
    }
    if let Some(part) =
        arguments.iter().find(|part| !CASES.iter().any(|(n, _)| n.starts_with(**part)))
    {
        eprintln!(
            "no case begins with {part:?}\nusage: cargo bench-all [the beginnings of cases' names]\n       cargo bench-all large <the events of a rebuild>"
        );
        CASES.iter().for_each(|(name, _)| eprintln!("  {name}"));
        return ExitCode::FAILURE;
    }
    let is_asked =
        |name: &str| arguments.is_empty() || arguments.iter().any(|part| name.starts_with(part));
    print_row(&HEAD);
    print_row(&["---"; HEAD.len()]);
    CASES.iter().filter(|(name, _)| is_asked(name)).for_each(|(name, case)| {
        compare(name, case());
    });
    ExitCode::SUCCESS
}

/// Does the work of one side once, in a process that valgrind watches.
fn under_count(case: &str, side: &str) {
    let (_, case) = CASES.iter().find(|(name, _)| *name == case).expect("one of the cases");
    let mut sides = case().sides.into_iter();
    let (_, side) = sides.find(|(name, _)| *name == side).expect("the case has this side");
    let mut work = side.work;
    work();
    instructions::collected(&mut work);
}

/// The cost of one command or event on one side.
struct Figures {
    ns: Spread,
    instructions: Option<f64>,
    allocations: f64,
    bytes: f64,
    requests: f64,
    read: f64,
    write: f64,
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
impl Figures {
    fn new(name: &str, by: &str, side: &Side, cost: Cost, units: usize) -> Self {
        let units = units as f64;
        let Spread { median, min, max } = cost.ns;
        Self {
            ns: Spread { median: median / units, min: min / units, max: max / units },
            instructions: instructions::count(name, by).map(|count| count / units),
            allocations: cost.allocations / units,
            bytes: cost.bytes / units,
            requests: side.usage.requests.len() as f64 / units,
            read: side.usage.read / units,
            write: side.usage.write / units,
        }
    }

    fn print(&self, what: &str, by: &str) {
        let Spread { median, min, max } = self.ns;
        print_row(&[
            what,
            by,
            &number(1e9 / median),
            &format!("{} ({} to {})", number(median / 1e3), number(min / 1e3), number(max / 1e3)),
            &self.instructions.map_or_else(|| "–".to_owned(), number),
            &number(self.allocations),
            &number(self.bytes),
            &number(self.requests),
            &format!("{} / {}", number(self.read), number(self.write)),
        ]);
    }
}

fn compare(name: &str, case: Case) {
    let Case { mut sides, unit, units } = case;
    let mut all: Vec<_> = sides.iter_mut().map(|(_, side)| side).collect();
    let costs = measure::costs(&mut all);
    let figures: Vec<_> = sides
        .iter()
        .zip(costs)
        .map(|((by, side), cost)| {
            let figures = Figures::new(name, by, side, cost, units);
            figures.print(&if *by == OURS { format!("{name}: {unit}") } else { String::new() }, by);
            figures
        })
        .collect();
    let [mine, other, ..] = &figures[..] else {
        return;
    };
    let times = |mine: f64, other: f64| format!("× {:.2}", mine / other);
    let both = mine.instructions.zip(other.instructions);
    print_row(&[
        "",
        "of bare",
        "",
        &times(mine.ns.median, other.ns.median),
        &both.map_or_else(String::new, |(mine, other)| times(mine, other)),
        &times(mine.allocations, other.allocations),
        &times(mine.bytes, other.bytes),
        "",
        "",
    ]);
}

fn print_row(cells: &[&str]) {
    println!("| {} |", cells.join(" | "));
}

/// Three digits, or all digits of a larger integer, with commas between thousands.
fn number(value: f64) -> String {
    if value < 100.0 {
        let digits = match value {
            ..1.0 => 3,
            ..10.0 => 2,
            _ => 1,
        };
        let text = format!("{value:.digits$}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{value:.0}");
    let first = digits.len() % 3;
    let (head, rest) = digits.split_at(if first == 0 { 3 } else { first });
    let groups = rest.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group));
    std::iter::once(head.into()).chain(groups).collect::<Vec<_>>().join(",")
}
