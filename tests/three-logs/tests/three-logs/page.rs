//! docs/which-log.md shows the number of lines that a move between logs changes, and the costs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use similar::{ChangeTag, TextDiff};

use crate::costs::{Cost, ROWS};

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/which-log.md")
}

fn source(file: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    fs::read_to_string(source).expect("the source")
}

/// The number of lines that only the first file has, and the number that only the second file has.
fn moved(from: &str, to: &str) -> (usize, usize) {
    let (from, to) = (source(from), source(to));
    let diff = TextDiff::from_lines(&from, &to);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(ChangeTag::Delete), count(ChangeTag::Insert))
}

/// The contexts on the other two logs, by their names on the page.
const MOVED: [(&str, &str); 2] =
    [("aggregate log", "aggregate.rs"), ("document log", "document.rs")];

fn moves() -> String {
    let mut table =
        "| from the DCB log to the | lines of a slice | lines of the context |\n|---|---|---|\n"
            .to_owned();
    for (log, context) in MOVED {
        let (removed, added) = moved("dcb.rs", context);
        let _ = writeln!(table, "| {log} | none | −{removed} +{added} |");
    }
    table
}

fn cell(cost: Option<Cost>) -> String {
    cost.map_or_else(
        || "no such decision".to_owned(),
        |Cost { requests: (reads, writes), read, write }| {
            format!("{} req., {read} read, {write} write", reads + writes)
        },
    )
}

fn table() -> String {
    let head = "| command | DCB log | aggregate log | document log |\n|---|---|---|---|\n";
    let mut table = head.to_owned();
    for (name, [dcb, aggregate, document]) in ROWS {
        let cells = [cell(dcb), cell(aggregate), cell(document)].join(" | ");
        let _ = writeln!(table, "| {name} | {cells} |");
    }
    table
}

/// The page with the text between two marks replaced.
fn replaced(page: &str, name: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end}"));
    format!("{before}{begin}{text}{end}{after}")
}

#[test]
fn the_page_has_the_moves_and_the_costs() {
    let found = fs::read_to_string(page()).expect("the page");
    let right = replaced(&found, "costs", &table());
    let right = replaced(&right, "moves", &moves());
    if env::var_os("UPDATE").is_some() {
        fs::write(page(), right).expect("the page can be written");
    } else {
        assert!(
            found == right,
            "write it with `UPDATE=1 cargo test --test three-logs the_page_has`"
        );
    }
}

#[test]
fn a_move_of_a_slice_changes_only_its_context() {
    let contexts = ["dcb.rs", "aggregate.rs", "document.rs"];
    // A document is one stream, so no decision there concerns two accounts.
    let on_two = [("transfer", &contexts[..2])];
    let slices = ["open", "deposit", "withdraw"].map(|slice| (slice, &contexts[..]));
    for (slice, contexts) in slices.into_iter().chain(on_two) {
        let file = format!("slices/{slice}.rs");
        for context in contexts {
            let module = format!("#[path = \"{file}\"]\npub mod {slice};\n");
            assert!(source(context).contains(&module), "{context}: {slice}");
        }
        for log in ["Dcb", "Aggregates", "Documents", "_log"] {
            assert!(!source(&file).contains(log), "{file} names a log: {log}");
        }
    }
    let (removed, added) = moved("dcb.rs", "aggregate.rs");
    assert!(removed <= 4 && added <= 4, "-{removed} +{added}");
}
