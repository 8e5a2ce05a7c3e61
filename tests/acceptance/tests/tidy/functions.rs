//! What goes with each function: its template entry, route, samples, cases, row and variables.

use std::{collections::BTreeSet, env, fs};

use ringfence_acceptance::{check_none, differences};
use ringfence_local::workspace_root;
use serde_json::Value;

use crate::{Function, entries, files, functions, model, name, production};

#[test]
fn every_function_has_its_template_entry_and_nothing_else_has_one() {
    let folders: Vec<String> = functions().into_iter().map(|function| function.name).collect();
    let unique: BTreeSet<String> = folders.iter().cloned().collect();
    assert_eq!(unique.len(), folders.len(), "a binary is built once: names must be unique");
    let template: BTreeSet<String> = model().functions.into_iter().map(|f| f.binary).collect();
    check_none(&differences(
        &template,
        &unique,
        |name| {
            format!(
                "template.yaml has no function `Binary: {name}`: copy a neighbour's block and change the \
                 names"
            )
        },
        |name| {
            format!(
                "template.yaml has a function `Binary: {name}`, but no context lists a slice of that name"
            )
        },
    ));
}

#[test]
fn every_slice_answers_post_at_its_own_path_and_views_are_read_with_get() {
    let route = |method: &str, path: &str, function: &Function| {
        (method.to_owned(), path.to_owned(), function.name.clone())
    };
    let routes_of = |function: &Function| match &*function.name {
        "query-views" => {
            ["/{view}", "/{view}/{id+}"].map(|path| route("GET", path, function)).into()
        }
        _ if function.is_slice() => vec![route("POST", &function.path(), function)],
        _ => Vec::new(),
    };
    let expected: BTreeSet<_> = functions().iter().flat_map(routes_of).collect();
    let routes: BTreeSet<_> = model()
        .routes
        .into_iter()
        .map(|route| (route.method, route.path, route.function))
        .collect();
    check_none(&differences(
        &routes,
        &expected,
        |(method, path, name)| {
            format!(
                "template.yaml: the Events of {name} lack \
                 `Http: {{ Type: HttpApi, Properties: {{ ApiId: !Ref Api, Method: {method}, Path: {path} }} }}`"
            )
        },
        |(method, path, name)| {
            format!("template.yaml: {name} answers {method} {path}, but should not")
        },
    ));
}

#[test]
fn every_function_has_sample_payloads_that_parse() {
    let events = workspace_root().join("events");
    let folders: BTreeSet<String> = entries(&events).iter().map(|path| name(path)).collect();
    let names = functions().iter().map(|function| function.name.clone()).collect();
    let none = |name: &String| format!("events/{name} is missing: copy a neighbour's folder");
    let extra = |name: &String| format!("events/{name} has samples of no function");
    check_none(&differences(&folders, &names, none, extra));
    for function in functions() {
        let folder = events.join(&function.name);
        for sample in function.samples() {
            let sample = folder.join(sample);
            assert!(sample.exists(), "{} is missing: copy a neighbour's", sample.display());
        }
        for sample in files(&folder, "json") {
            let text = fs::read_to_string(&sample).unwrap();
            let json: Value = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", sample.display()));
            if name(&sample) == "http.json" && function.is_slice() {
                let path = json["requestContext"]["http"]["path"].as_str();
                assert_eq!(path, Some(&*function.path()), "{}", sample.display());
            }
        }
    }
}

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

#[test]
fn every_tag_key_that_needs_an_index_has_one_and_no_other_key_has() {
    let catalog = stack::stack().catalog;
    let model = model();
    let table = &model.table("EventTable").unwrap().properties;
    let indexes = table["GlobalSecondaryIndexes"].as_array().unwrap().iter();
    let names: BTreeSet<String> =
        indexes.map(|index| index["IndexName"].as_str().unwrap().to_owned()).collect();
    check_none(&differences(
        &names,
        &catalog.indexes(),
        |name| {
            format!(
                "template.yaml: EventTable lacks an index: copy a neighbour's entries in \
                 GlobalSecondaryIndexes and AttributeDefinitions, with `IndexName: {name}` and \
                 `AttributeName: {name}`"
            )
        },
        |name| format!("template.yaml: EventTable has the index {name}, which no tag key needs"),
    ));
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
