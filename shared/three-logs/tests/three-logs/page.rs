//! docs/which-log.md shows the code and the figures as they are.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::costs::{Cost, ROWS};

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/which-log.md")
}

/// A source file from its first item on: without what it is about and what it uses.
fn quoted(file: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let source = fs::read_to_string(source).expect("the source");
    let begins = |line: &&str| line.starts_with("/// ") || line.starts_with("id_type!");
    let items = source.lines().skip_while(|line| !begins(line)).collect::<Vec<_>>();
    format!("```rust\n{}\n```\n", items.join("\n"))
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

/// The page with what stands between the two marks replaced.
fn replaced(page: &str, name: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end}"));
    format!("{before}{begin}{text}{end}{after}")
}

#[test]
fn the_page_has_the_code_and_the_figures() {
    let found = fs::read_to_string(page()).expect("the page");
    let mut right = replaced(&found, "costs", &table());
    for (name, file) in [
        ("rules", "src/account.rs"),
        ("cases", "tests/three-logs/cases.rs"),
        ("dcb", "src/dcb.rs"),
        ("aggregate", "src/aggregate.rs"),
        ("document", "src/document.rs"),
    ] {
        right = replaced(&right, name, &quoted(file));
    }
    if env::var_os("UPDATE").is_some() {
        fs::write(page(), right).expect("the page can be written");
    } else {
        assert!(
            found == right,
            "write it with `UPDATE=1 cargo test --test three-logs the_page_has`"
        );
    }
}
