//! The tables of functions in the documentation.

use std::{env, fs};

use ringfence_local::workspace_root;
use ringfence_testing::template::differences;

use crate::{Function, functions, model};

#[test]
fn the_page_of_slices_lists_the_functions() {
    let row = |function: &Function, woken: &str| {
        let (name, source, summary) = (&function.name, function.source(), function.summary());
        let source = source.strip_prefix(workspace_root()).unwrap().display();
        format!("| [`{name}`](../{source}) | {woken} | {summary} |\n")
    };
    let functions = functions();
    let (slices, others): (Vec<_>, Vec<_>) = functions.iter().partition(|f| f.is_slice);
    let slices = slices.iter().map(|slice| row(slice, &format!("`POST {}`", slice.path())));
    let model = model();
    let woken = |function: &Function| {
        let table = |name| &model.tables.iter().find(|table| table.name == name).unwrap().id;
        let mappings = model.mappings.iter().filter(|mapping| mapping.function == function.name);
        let streams = mappings.map(|mapping| format!("the stream of `{}`", table(&*mapping.table)));
        let routes = model.routes.iter().filter(|route| route.function == function.name);
        let routes = routes.map(|route| format!("`{} {}`", route.method, route.path));
        let schedules = model.schedules.iter().filter(|it| it.target.function == function.name);
        let schedules = schedules.map(|schedule| format!("`{}`", schedule.expression));
        streams.chain(routes).chain(schedules).collect::<Vec<_>>().join(", ")
    };
    let others = others.iter().map(|function| row(function, &woken(function)));
    check_table("slices", "slice | path", slices.collect());
    check_table("functions", "function | woken by", others.collect());
}

/// The page that has the tables of slices and functions.
const PAGE: &str = "docs/slices.md";

/// Compares a table of the page, between its marks, with the expected one, or writes it.
fn check_table(name: &str, columns: &str, rows: String) {
    let path = workspace_root().join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let begin = page.find(&format!("<!-- {name}:")).expect("the page has the table");
    let begin = begin + page[begin..].find('\n').unwrap() + 1;
    let end = page[begin..].find(&format!("<!-- end of {name} -->")).expect("the table ends");
    let end = begin + end;
    let table = format!("| {columns} | what it does |\n|---|---|---|\n{rows}");
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, format!("{}{table}{}", &page[..begin], &page[end..])).unwrap();
    } else {
        let lines = |table: &str| table.lines().map(str::to_owned).collect();
        let lines = differences(
            &lines(&page[begin..end]),
            &lines(&table),
            |row| format!("{PAGE} lacks the row {row}"),
            |row| format!("{PAGE} has the row {row}"),
        );
        let write = "`UPDATE=1 cargo test --test tidy` writes the table";
        assert!(page[begin..end] == table, "\n{}\n{write}", lines.join("\n"));
    }
}
