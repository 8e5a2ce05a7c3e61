//! The rules of the repository that a program can check.

mod answers;
mod costs;
mod functions;
mod layers;
mod nouns;
mod rooms;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use ringfence_acceptance::Application;
use ringfence_core::Context;
use ringfence_local::{template::Model, workspace_root};
use ringfence_services::personal_data::PersonalData;
use ringfence_testing::template::differences;

/// A source file has at most this many lines, without the cases of a slice.
const FILE_LINES_MAX: usize = 400;
/// A line of a page has at most this many letters, except in tables, code and pictures.
const LINE_LETTERS_MAX: usize = 120;

/// A binary of a stack.
struct Function {
    /// Its folder in `functions/`: a context, or `stack`.
    context: String,
    name: String,
    /// The file that describes it.
    source: PathBuf,
    is_slice: bool,
}

impl Function {
    /// For a slice: the path of its route, and its name for `ringfence send`.
    fn path(&self) -> String {
        format!("{}/{}", self.context, self.name)
    }

    /// The first line of its documentation, or the line with its name, without the name in front.
    fn summary(&self) -> String {
        let source = fs::read_to_string(&self.source).unwrap();
        let named = format!("//! - {}: ", self.name);
        let line = source.lines().find(|line| line.starts_with(&named));
        let line = line.unwrap_or_else(|| source.lines().next().unwrap());
        line.trim_start_matches("//! ")
            .split_once(": ")
            .unwrap_or_else(|| panic!("{}: {line}", self.name))
            .1
            .to_owned()
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

/// The slices of a stack, and its other functions: functions that serve the whole stack, reactors, and other functions
/// of contexts. A function in the template that no context lists serves the whole stack.
fn functions(Application { root, stack }: &Application, model: &Model) -> Vec<Function> {
    let function = |context: &str, name: &str, is_slice| {
        let source = match context {
            PersonalData::NAME => workspace_root().join("shared/services/src/personal_data.rs"),
            _ => root.join(format!("functions/{context}/src/{}.rs", name.replace('-', "_"))),
        };
        let (context, name) = (context.to_owned(), name.to_owned());
        Function { context, name, source, is_slice }
    };
    let slices = stack.slices().map(|(context, slice)| function(context.name, slice.name, true));
    let reactors = stack.reactors().map(|(context, it)| function(context.name, it.name, false));
    let others = stack.functions().map(|(context, it)| function(context.name, it.name, false));
    let mut listed: Vec<_> = slices.chain(reactors).chain(others).collect();
    let heads = heads();
    let of_stack = model.functions.iter().map(|function| &*function.binary);
    let of_stack = of_stack.filter(|binary| listed.iter().all(|of| of.name != *binary));
    let serving = of_stack.map(|binary| {
        let is_it = |(name, _): &&(String, PathBuf)| {
            binary.strip_suffix(&**name).is_some_and(|it| it.is_empty() || it.ends_with('-'))
        };
        let (_, source) = heads.iter().find(is_it).unwrap_or_else(|| {
            panic!("no file of shared/ begins with `//! {binary}: `, and what the function does")
        });
        Function { source: source.clone(), ..function("stack", binary, false) }
    });
    let serving: Vec<_> = serving.collect();
    let at = listed.iter().filter(|of| of.is_slice).count();
    listed.splice(at..at, serving);
    listed
}

/// The subjects of the libraries' files, by their first lines: `//! <name>: <summary>`.
fn heads() -> Vec<(String, PathBuf)> {
    let head = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let (name, _) = text.lines().next()?.strip_prefix("//! ")?.split_once(": ")?;
        Some((name.to_owned(), path))
    };
    files(&workspace_root().join("shared"), "rs").into_iter().filter_map(head).collect()
}

/// The folders of libraries: first the libraries that run on AWS, then the tools.
const LIBRARIES: [&str; 3] = ["shared", "shared/compat", "tools"];

/// The packages in one of these folders.
fn packages(room: &str) -> impl Iterator<Item = PathBuf> {
    let packages = entries(&workspace_root().join(room)).into_iter();
    packages.filter(|package| package.join("Cargo.toml").exists())
}

/// Files below `folder` with this extension, without built and hidden ones.
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

/// The part of a file before the module of its tests, if that is in the file.
fn production(source: &str) -> &str {
    let begins = source.match_indices("#[cfg(test)]\n");
    let is_module = |(_, after): &(usize, &str)| {
        let line = after.lines().nth(1).unwrap_or_default();
        line.trim_start_matches("pub(crate) ").starts_with("mod ") && line.ends_with('{')
    };
    let mut begins = begins.map(|(at, _)| (at, &source[at..]));
    begins.find(is_module).map_or(source, |(at, _)| &source[..at])
}

#[test]
fn only_the_differences_are_named() {
    let set = |names: &[&'static str]| BTreeSet::from_iter(names.iter().copied());
    let named = |found: &[&'static str]| {
        let expected = set(&["add-product", "cancel-order", "place-order"]);
        let (add, drop) =
            (|name: &&str| format!("add {name}"), |name: &&str| format!("drop {name}"));
        differences(&set(found), &expected, add, drop)
    };
    assert_eq!(named(&["add-product", "cancel-order", "place-order"]), [""; 0]);
    assert_eq!(named(&["add-product", "place-order", "x"]), ["add cancel-order", "drop x"]);
}

/// The number of lines of a file without the cases of its slice. Cases stay beside the slice, however many they are.
fn lines_without_cases(source: &str) -> usize {
    let mut is_case = false;
    let count = |line: &&str| {
        is_case = (is_case || line.starts_with("    fn cases() -> ")) && *line != "    }";
        !is_case
    };
    source.lines().filter(count).count()
}

#[test]
fn no_source_file_is_too_long() {
    for folder in ["shared", "tools", "functions", "projects", "starter", "tests"] {
        for path in files(&workspace_root().join(folder), "rs") {
            let lines = lines_without_cases(&fs::read_to_string(&path).unwrap());
            assert!(lines <= FILE_LINES_MAX, "{}: {lines} lines", path.display());
        }
    }
}

#[test]
fn one_module_reads_the_clock_and_makes_ids_and_one_writes_lines_of_the_log() {
    let root = workspace_root();
    let clock = ["SystemTime::now", "Utc::now", "Instant::now", "new_v4", "now_v7"];
    let rules = [
        (root.join("shared/aws/src/clock.rs"), &clock[..]),
        (root.join("shared/lambda/src/line.rs"), &["println!", "\"CloudWatchMetrics\""]),
    ];
    let sources = ["shared", "functions", "projects", "starter"]
        .into_iter()
        .flat_map(|folder| files(&root.join(folder), "rs"))
        // Tests are excluded: the folders `tests`, the files `tests.rs`, and the module at a file's end.
        .filter(|path| !path.components().any(|part| part.as_os_str() == "tests"))
        .filter(|path| name(path) != "tests.rs")
        // The tools run on a person's machine.
        .filter(|path| !path.starts_with(root.join("functions/tools")))
        .filter(|path| !path.starts_with(root.join("projects/functions/tools")));
    let mut seen = BTreeSet::new();
    for path in sources {
        let source = fs::read_to_string(&path).unwrap();
        let code = production(&source).lines().filter(|line| !line.starts_with("//!"));
        let code: String = code.collect();
        for (module, calls) in &rules {
            for call in calls.iter().filter(|call| code.contains(**call)) {
                assert_eq!(&path, module, "only the module on the right may have {call}");
                seen.insert(module);
            }
        }
    }
    assert_eq!(seen.len(), rules.len(), "a module has moved: {seen:?}");
}

#[test]
fn requests_to_tables_are_sent_by_one_module() {
    let libraries = ["compat", "dcb-log", "feed", "reactors", "subjects", "views"];
    for library in libraries {
        let sources = files(&workspace_root().join("shared").join(library), "rs");
        let is_test =
            |path: &PathBuf| path.iter().any(|part| part == "tests") || path.ends_with("tests.rs");
        for path in sources.into_iter().filter(|path| !is_test(path)) {
            let sends = fs::read_to_string(&path).unwrap().contains(".send()");
            assert!(!sends, "{}: send requests with `ringfence_aws::Table`", path.display());
        }
    }
}

#[test]
fn the_kit_shows_an_error_with_its_causes() {
    let root = workspace_root();
    let kits = ["core", "compat/document-log", "views"];
    let kits = kits.map(|library| root.join("shared").join(library).join("src/kit.rs"));
    let more = ["tools/testing/src", "shared/core/src/kit"].map(|it| files(&root.join(it), "rs"));
    for path in kits.into_iter().chain(more.concat()) {
        let source = fs::read_to_string(&path).unwrap();
        let drops = ["{error}", "{error:?}"].iter().any(|shown| source.contains(shown));
        assert!(!drops, "{}: `kit::fail` shows an error with its causes", path.display());
    }
}

/// The lines of a page without its blocks of code, where a comment is not a heading.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    page.split("```").step_by(2).flat_map(str::lines)
}

#[test]
fn no_line_of_a_page_is_too_long() {
    for page in files(&workspace_root(), "md") {
        let text = fs::read_to_string(&page).unwrap();
        let long = prose(&text).filter(|line| !line.starts_with(['|', '!']));
        let long: Vec<_> = long.filter(|line| line.chars().count() > LINE_LETTERS_MAX).collect();
        assert!(long.is_empty(), "{}: {long:#?}", page.display());
    }
}

/// The anchors of a page, as GitHub makes them of its headings.
fn anchors(page: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(page).unwrap();
    let headings =
        prose(&text).filter_map(|line| Some(line.strip_prefix('#')?.trim_start_matches('#')));
    let anchor = |heading: &str| {
        let heading = heading.trim().to_lowercase().replace(' ', "-");
        heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_relative_link_leads_somewhere() {
    for page in files(&workspace_root(), "md") {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let target =
                if target.is_empty() { page.clone() } else { page.parent().unwrap().join(target) };
            assert!(target.exists(), "{}: {link} leads nowhere", page.display());
            let has_anchor = anchor.is_empty() || anchors(&target).contains(anchor);
            assert!(has_anchor, "{}: {link}: no heading has this anchor", page.display());
        }
    }
}

#[test]
fn the_readme_shows_a_slice_as_it_is() {
    let text = |path: &str| fs::read_to_string(workspace_root().join(path)).unwrap();
    let (readme, source) = (text("README.md"), text("functions/ordering/src/order_product.rs"));
    let blocks = readme.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let [slice, cases] = blocks.collect::<Vec<_>>()[..] else { panic!("the slice and its cases") };
    let (before_cases, all_cases) = source.split_once("\n    fn cases() ").unwrap();
    assert!(format!("{before_cases}}}\n").ends_with(slice), "README.md has another slice");
    assert!(all_cases.contains(cases), "README.md has other cases");
    // The first page of the library compiles the same slice.
    let page = text("shared/ringfence/src/lib.rs");
    let page = page.lines().filter_map(|line| line.strip_prefix("//!"));
    let page: String =
        page.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
    let without_end = slice.strip_suffix("}\n").unwrap();
    assert!(page.contains(without_end), "shared/ringfence/src/lib.rs has another slice");
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
        // Cargo writes the members into the lock file. Nothing else there has no source.
        let entry = format!("[[package]]\nname = {package}\nversion = ");
        assert!(lock.contains(&entry), "{}: not a member of the workspace", manifest.display());
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{}: lacks `[lints]` with `workspace = true`",
            manifest.display()
        );
    }
}
