//! The rules of the repository that a program can check.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use ringfence_local::{
    template::{Model, Template},
    workspace_root,
};
use ringfence_stack::{CATEGORIES, EVENT_STORES};
use serde_json::Value;

/// Most lines of a source file.
const FILE_LINES_MAX: usize = 400;

/// A folder below `functions/`.
struct Function {
    context: String,
    name: String,
    folder: PathBuf,
}

impl Function {
    fn is_slice(&self) -> bool {
        !["reactions", "views"].contains(&&*self.context)
    }

    /// The module of `ringfence-lambda` that runs it, if it is a slice: that of its context's log.
    fn runner(&self) -> Option<&'static str> {
        match &*self.context {
            _ if !self.is_slice() => None,
            store if EVENT_STORES.contains(&store) => Some("aggregate"),
            category if CATEGORIES.contains(&category) => Some("document"),
            _ => Some("dcb"),
        }
    }

    /// The samples that show how it is invoked.
    fn samples(&self) -> &[&str] {
        match &*self.context {
            "reactions" => &["stream.json"],
            "views" => &["http.json", "list.json"],
            _ => &["http.json", "direct.json"],
        }
    }

    fn path(&self) -> String {
        format!("/{}/{}", self.context, self.name)
    }

    /// The first line of the crate's documentation, without the name in front.
    fn summary(&self) -> String {
        let source = fs::read_to_string(self.folder.join("src/lib.rs")).unwrap();
        let line = source.lines().next().unwrap().trim_start_matches("//! ");
        line.split_once(": ").unwrap_or_else(|| panic!("{}: {line}", self.name)).1.to_owned()
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn functions() -> Vec<Function> {
    let contexts = entries(&workspace_root().join("functions"));
    let folders = contexts.iter().flat_map(|context| entries(context));
    let function = |folder: PathBuf| Function {
        context: name(folder.parent().unwrap()),
        name: name(&folder),
        folder,
    };
    folders.map(function).collect()
}

/// Files below `folder` with this extension, without what is built or hidden.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        let skipped = name(&path) == "target" || name(&path).starts_with('.');
        if path.is_dir() && !skipped {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

fn model() -> Model {
    Template::of_workspace().unwrap().model("http://127.0.0.1:1").unwrap()
}

#[test]
fn every_function_has_its_template_entry_and_nothing_else_has_one() {
    let folders: Vec<String> = functions().into_iter().map(|function| function.name).collect();
    let unique: BTreeSet<String> = folders.iter().cloned().collect();
    assert_eq!(unique.len(), folders.len(), "a binary is built once: names must be unique");
    let template: BTreeSet<String> = model().functions.into_iter().map(|f| f.binary).collect();
    assert_eq!(template, unique);
}

#[test]
fn every_slice_answers_post_at_its_own_path_and_views_are_read_with_get() {
    let route = |method: &str, path: &str, function: &Function| {
        (method.to_owned(), path.to_owned(), function.name.clone())
    };
    let routes_of = |function: &Function| match &*function.context {
        "reactions" => Vec::new(),
        "views" => ["/{view}", "/{view}/{id+}"].map(|path| route("GET", path, function)).into(),
        _ => vec![route("POST", &function.path(), function)],
    };
    let expected: BTreeSet<_> = functions().iter().flat_map(routes_of).collect();
    let routes: BTreeSet<_> = model()
        .routes
        .into_iter()
        .map(|route| (route.method, route.path, route.function))
        .collect();
    assert_eq!(routes, expected);
}

#[test]
fn every_function_has_sample_payloads_that_parse() {
    let events = workspace_root().join("events");
    let folders: BTreeSet<String> = entries(&events).iter().map(|path| name(path)).collect();
    assert_eq!(folders, functions().iter().map(|f| f.name.clone()).collect());
    for function in functions() {
        let folder = events.join(&function.name);
        for sample in function.samples() {
            assert!(folder.join(sample).exists(), "{}: no {sample}", folder.display());
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
fn the_cases_of_every_slice_run_on_dynamodb() {
    for log in ["aggregate", "dcb", "document"] {
        let path = workspace_root().join(format!("shared/{log}-log/tests/{log}-log/cases.rs"));
        let text = fs::read_to_string(&path).unwrap();
        let list = text.split("slices! {").nth(1).unwrap().split('}').next().unwrap();
        let listed: BTreeSet<String> =
            list.split_whitespace().map(|slice| slice.replace('_', "-")).collect();
        let slices = functions().into_iter().filter(|function| function.runner() == Some(log));
        assert_eq!(listed, slices.map(|slice| slice.name).collect(), "{}", path.display());
    }
}

#[test]
fn the_readme_lists_the_functions() {
    let row = |function: &Function, woken: &str| {
        let (name, path, summary) = (&function.name, function.path(), function.summary());
        format!("| [`{name}`](functions{path}/src/lib.rs) | {woken} | {summary} |\n")
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
    readme_table("slices", "slice | path", slices.collect());
    readme_table("functions", "function | woken by", others.collect());
}

/// Compares a table of the README, between its marks, with what it must be, or writes it.
fn readme_table(name: &str, columns: &str, rows: String) {
    let path = workspace_root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let begin = readme.find(&format!("<!-- {name}:")).expect("README.md has the table");
    let begin = begin + readme[begin..].find('\n').unwrap() + 1;
    let end = readme[begin..].find(&format!("<!-- end of {name} -->")).expect("the table ends");
    let end = begin + end;
    let table = format!("| {columns} | what it does |\n|---|---|---|\n{rows}");
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, format!("{}{table}{}", &readme[..begin], &readme[end..])).unwrap();
    } else {
        assert_eq!(&readme[begin..end], table, "write it with `UPDATE=1 cargo test --test tidy`");
    }
}

#[test]
fn every_tag_key_that_needs_an_index_has_one_and_no_other_key_has() {
    let catalog = ringfence_stack::catalog().unwrap();
    let model = model();
    let table = &model.table("EventTable").unwrap().properties;
    let indexes = table["GlobalSecondaryIndexes"].as_array().unwrap().iter();
    let names: BTreeSet<String> =
        indexes.map(|index| index["IndexName"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, catalog.indexes());
}

#[test]
fn a_context_is_on_one_log() {
    let catalog = ringfence_stack::catalog().unwrap();
    let declared: BTreeSet<_> =
        catalog.schemas().map(|schema| catalog.context(schema.name).unwrap()).collect();
    let streams: BTreeSet<_> = EVENT_STORES.into_iter().chain(CATEGORIES).collect();
    assert_eq!(streams.len(), EVENT_STORES.len() + CATEGORIES.len(), "a store is a category");
    // The source of an entry of the EventTopic would not say whose event it is.
    let both: Vec<_> = declared.intersection(&streams).collect();
    assert!(both.is_empty(), "{both:?} are contexts of the DCB log and of another");
    let slices = functions().into_iter().filter(Function::is_slice);
    for slice in slices {
        let known = ringfence_stack::contexts().unwrap();
        assert!(known.contains(&*slice.context), "{}: no context {}", slice.name, slice.context);
    }
}

/// Names in calls such as `required("NAME")` of code that is no test.
fn variables(source: &str, call: &str) -> BTreeSet<String> {
    let calls = production(source).split(call).skip(1);
    calls.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// The part of a file before its tests.
fn production(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod ").next().unwrap_or_default()
}

#[test]
fn the_template_sets_the_variables_that_code_reads() {
    let runners = workspace_root().join("shared/lambda/src");
    for function in model().functions {
        let folder = functions().into_iter().find(|f| f.name == function.binary).unwrap();
        let mut sources = files(&folder.folder.join("src"), "rs");
        sources.extend(folder.runner().map(|name| runners.join(name).with_extension("rs")));
        let text: String = sources
            .iter()
            .map(|path| fs::read_to_string(path).unwrap())
            .fold(String::new(), |all, source| all + production(&source));
        let required = variables(&text, "required(\"");
        let known: BTreeSet<_> =
            required.union(&variables(&text, "optional(\"")).cloned().collect();
        let set: BTreeSet<String> = function.environment.into_keys().collect();
        assert!(!required.is_empty(), "{}: finds no variable", folder.name);
        assert!(required.is_subset(&set), "{}: reads {required:?}, has {set:?}", folder.name);
        assert!(set.is_subset(&known), "{}: has {set:?}, reads {known:?}", folder.name);
    }
}

#[test]
fn no_source_file_is_too_long() {
    for folder in ["shared", "functions", "tests"] {
        for path in files(&workspace_root().join(folder), "rs") {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            assert!(lines <= FILE_LINES_MAX, "{}: {lines} lines", path.display());
        }
    }
}

#[test]
fn one_module_reads_the_clock_and_makes_ids() {
    let root = workspace_root();
    let clock = root.join("shared/dynamo/src/clock.rs");
    let folders = [
        "aggregate-log",
        "core",
        "derive",
        "dcb-log",
        "document-log",
        "dynamo",
        "feed",
        "lambda",
        "views",
        "contexts",
    ]
    .map(|f| format!("shared/{f}"));
    let sources = folders
        .iter()
        .map(String::as_str)
        .chain(["functions"])
        .flat_map(|folder| files(&root.join(folder), "rs"))
        // Tests and benches hold no clock: `tests/`, `tests.rs` and the module at a file's end.
        .filter(|path| !path.components().any(|part| part.as_os_str() == "tests"))
        .filter(|path| name(path) != "tests.rs");
    let mut seen = false;
    for path in sources {
        let source = fs::read_to_string(&path).unwrap();
        for call in ["SystemTime::now", "Utc::now", "Instant::now", "new_v4", "now_v7"] {
            let reads = production(&source).contains(call);
            seen |= reads && path == clock;
            assert!(!reads || path == clock, "{}: {call}", path.display());
        }
    }
    assert!(seen, "{} has moved", clock.display());
}

#[test]
fn every_relative_link_leads_somewhere() {
    for page in files(&workspace_root(), "md") {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let found = page.parent().unwrap().join(target).exists();
            assert!(found, "{}: {link} leads nowhere", page.display());
        }
    }
}

#[test]
fn every_package_is_a_member_of_the_workspace_and_takes_its_lints() {
    let root = workspace_root();
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
    for manifest in files(&root, "toml").into_iter().filter(|path| name(path) == "Cargo.toml") {
        if manifest.parent() == Some(&root) {
            continue;
        }
        let text = fs::read_to_string(&manifest).unwrap();
        let package = text.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
        // Cargo writes the members into the lock file, and nothing else without a source.
        let entry = format!("[[package]]\nname = {package}\nversion = ");
        assert!(lock.contains(&entry), "{}: no member", manifest.display());
        assert!(text.contains("[lints]\nworkspace = true"), "{}: lints", manifest.display());
    }
}
