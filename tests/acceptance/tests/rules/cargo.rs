//! All ways to build share one build of the dependencies, and program and test targets have unique names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringfence_local::workspace_root;
use serde_json::Value;

/// The output of cargo, run in the workspace.
fn cargo(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(arguments).arg("--offline").current_dir(workspace_root()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The features of each package that these packages build, with dependencies of these kinds. A package has several sets
/// if macros and programs build it with different features.
fn features(kinds: &str, packages: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    // `--no-dedupe` would print each path to a package, which never ends here. So repeats end with ` (*)`.
    let form = ["--prefix=none", "--format={p}|{f}"];
    let tree = cargo(&[&["tree", "--edges", kinds][..], &form, packages].concat());
    let mut found = BTreeMap::<_, BTreeSet<_>>::new();
    for line in tree.lines() {
        if let Some((package, features)) = line.trim_end_matches(" (*)").split_once('|') {
            found.entry(package.to_owned()).or_default().insert(features.to_owned());
        }
    }
    found
}

#[test]
fn dependencies_of_tests_add_no_features_to_other_builds() {
    let without = features("normal,build", &["--workspace"]);
    let with = features("normal,build,dev", &["--workspace"]);
    for (package, features) in without {
        assert_eq!(
            with[&package], features,
            "{package}: `cargo test` builds it with other features (left) than `cargo demo`; ask \
             for them in the dependencies of tools/local too, which no function has"
        );
    }
    // The tests of each context depend on the same packages. The others are all that a new stack builds.
    let of_a_context = features("normal,build,dev", &["--package=shop"]);
    let starter = ["starter-new", "starter-stack", "starter-tests", "starter-tools"];
    let starter = starter.map(|package| format!("--package={package}"));
    let of_a_stack = features("normal,build,dev", &starter.each_ref().map(|it| &**it));
    for (package, features) in of_a_context.into_iter().chain(of_a_stack) {
        assert!(
            features.is_subset(&with[&package]),
            "{package}: `cargo test -p <context>`, or a new stack, builds it with the features {features:?}, and \
             `cargo test` with {:?}: ask for the same in the dependencies of tools/testing or tools/local",
            with[&package]
        );
    }
}

#[test]
fn no_program_has_http_2() {
    let lock = fs::read_to_string(workspace_root().join("Cargo.lock")).unwrap();
    assert!(lock.contains("name = \"hyper\"\n"));
    assert!(
        !lock.contains("name = \"h2\"\n"),
        "a dependency asks for HTTP/2, which would add a tenth to the code of each function: leave out its \
         feature http2, and `cargo tree --invert h2` says whose it is"
    );
}

#[test]
fn no_program_is_linked_a_second_time_for_tests_that_it_does_not_have() {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version=1"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let targets = packages.iter().flat_map(|package| package["targets"].as_array().unwrap());
    for target in targets.filter(|target| target["kind"][0] == "bin") {
        let (name, path) = (&target["name"], &target["src_path"]);
        assert_eq!(target["test"], false, "{path}: write [[bin]], name = {name}, test = false");
    }
}

#[test]
fn a_library_that_is_not_built_for_tests_has_no_tests() {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version=1"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let targets = packages.iter().flat_map(|package| package["targets"].as_array().unwrap());
    let libraries = targets.filter(|it| it["kind"][0] == "lib" && it["test"] == false);
    // Outside of `src`, test targets are beside the library.
    let folders = libraries.filter_map(|library| {
        let path = Path::new(library["src_path"].as_str().unwrap());
        path.parent().filter(|folder| folder.ends_with("src")).map(Path::to_owned)
    });
    let sources: Vec<PathBuf> = folders.flat_map(|folder| sources(&folder)).collect();
    for path in &sources {
        let source = fs::read_to_string(path).unwrap();
        let mut lines = source.lines().map(str::trim);
        let has_tests = lines.any(|it| it == "#[test]" || it.starts_with("#[tokio::test"));
        assert!(
            !has_tests,
            "{}: remove `test = false` from [lib], or no test runs",
            path.display()
        );
    }
    assert!(!sources.is_empty());
}

/// The Rust files of a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let all = paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    all.filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}

#[test]
fn programs_and_test_targets_have_unique_names() {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version=1"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let mut found = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        for target in package["targets"].as_array().unwrap() {
            let kind = target["kind"][0].as_str().unwrap();
            if ["bin", "test"].contains(&kind) {
                let name = target["name"].as_str().unwrap();
                let path = target["src_path"].as_str().unwrap();
                let other = found.insert((kind, name), path);
                assert_eq!(other, None, "{path}: `cargo … --{kind} {name}` means another too");
            }
        }
    }
    assert!(found.contains_key(&("test", "rules")), "{found:?}");
}

#[test]
fn a_page_a_script_or_an_alias_selects_no_package_but_a_context() {
    let root = workspace_root();
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let stacks = ["projects", "projects/.cargo", "starter", "starter/.cargo"];
    let folders = [".cargo", ".ci", "docs", "scripts", "tools/new/src"];
    for folder in folders.into_iter().chain(stacks) {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        pages.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()));
    }
    let is_context = |name: &str| {
        let mut stacks = ["", "starter", "projects"].into_iter();
        let manifest = |stack| root.join(stack).join("functions").join(name).join("Cargo.toml");
        !["stack", "tools"].contains(&name) && stacks.any(|stack| manifest(stack).exists())
    };
    for page in pages {
        for line in fs::read_to_string(&page).unwrap().lines() {
            let is_older = line.contains("ringfence new-");
            assert!(!is_older, "{}: `cargo new-…` adds to a stack: {line}", page.display());
            // With the features of another package alone, cargo would build the dependencies again.
            let selects = ["cargo", "run"].iter().any(|word| line.contains(word));
            if let Some((_, rest)) = line.split_once(" -p ").filter(|_| selects) {
                let name: String =
                    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '-').collect();
                let is_any = rest.starts_with("<context>");
                assert!(is_any || is_context(&name), "{}: leave out -p: {line}", page.display());
            }
        }
    }
}
