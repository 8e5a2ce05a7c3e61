//! What goes with each function: its template entry, route, samples, cases, row and variables.

use std::{collections::BTreeSet, env, fs};

use ringfence_local::workspace_root;
use ringfence_testing::template::{check_none, differences};

use crate::{Function, functions, model, production};

#[test]
fn the_page_of_slices_lists_the_functions() {
    let row = |function: &Function, woken: &str| {
        let (name, source, summary) = (&function.name, function.source(), function.summary());
        let source = source.strip_prefix(workspace_root()).unwrap().display();
        format!("| [`{name}`](../{source}) | {woken} | {summary} |\n")
    };
    let functions = functions();
    let (slices, others): (Vec<_>, Vec<_>) = functions.iter().partition(|f| f.is_slice());
    let slices = slices.iter().map(|slice| row(slice, &format!("`POST {}`", slice.path())));
    let model = model();
    let woken = |function: &Function| {
        let table = |name| &model.tables.iter().find(|table| table.name == name).unwrap().id;
        let mappings = model.mappings.iter().filter(|mapping| mapping.function == function.name);
        let streams = mappings.map(|mapping| format!("the stream of `{}`", table(&*mapping.table)));
        let routes = model.routes.iter().filter(|route| route.function == function.name);
        let routes = routes.map(|route| format!("`{} {}`", route.method, route.path));
        streams.chain(routes).collect::<Vec<_>>().join(", ")
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

/// Names in calls such as `required("NAME")` of code that is no test.
fn variables(source: &str, call: &str) -> BTreeSet<String> {
    let calls = production(source).split(call).skip(1);
    calls.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

#[test]
fn the_template_sets_the_variables_that_code_reads() {
    let functions = functions();
    let all = model().functions;
    let sets = |name: &String| all.iter().filter(|f| f.environment.contains_key(name)).count();
    // Those of `Globals`: each function has them, whether it reads them or not.
    let names = all.iter().flat_map(|function| function.environment.keys().cloned());
    let common: BTreeSet<String> = names.filter(|name| sets(name) == all.len()).collect();
    let mut read = BTreeSet::new();
    for function in &all {
        let name = &function.binary;
        let it = functions.iter().find(|it| it.name == *name).unwrap();
        let text = fs::read_to_string(it.runner()).unwrap();
        let text = production(&text);
        let required = variables(text, "required(\"");
        let known: BTreeSet<_> = required.union(&variables(text, "optional(\"")).cloned().collect();
        let set: BTreeSet<String> = function.environment.keys().cloned().collect();
        assert!(!required.is_empty(), "{name}: finds no variable");
        let lacking = required.difference(&set).map(|variable| {
            format!(
                "template.yaml: the Environment of {name}, or of Globals, lacks {variable}, which the \
                 code of {name} requires"
            )
        });
        let own = set.difference(&common);
        let unread = own.filter(|variable| !known.contains(*variable)).map(|variable| {
            format!(
                "template.yaml: the Environment of {name} has {variable}, which its code does not read"
            )
        });
        check_none(&lacking.chain(unread).collect::<Vec<_>>());
        read.extend(known);
    }
    let unread = common.difference(&read);
    let unread = unread.map(|variable| {
        format!("template.yaml: the Environment of Globals has {variable}, which no function reads")
    });
    check_none(&unread.collect::<Vec<_>>());
}
