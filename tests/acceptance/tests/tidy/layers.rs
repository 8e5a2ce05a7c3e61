//! Modules that are layers: none of them uses one that uses it, directly or through others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ringfence_local::workspace_root;

use crate::{files, name, production};

/// The crates whose modules are layers.
const LAYERED: [&str; 2] = ["dcb-log", "feed"];

/// What each module of a crate takes from the crate's root, by name.
fn uses(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let is_module = |path: &PathBuf| !["lib.rs", "tests.rs"].contains(&&*name(path));
    let modules = files(source, "rs").into_iter().filter(is_module);
    let module = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    modules.map(|path| (module(&path), taken(&fs::read_to_string(path).unwrap()))).collect()
}

/// The names after `crate::` in code, `a` and `b` of `crate::a::X` and of `crate::{a, b}`.
fn taken(source: &str) -> BTreeSet<String> {
    let code = production(source).lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.collect();
    let paths = code.split("crate::").skip(1).flat_map(|path| match path.strip_prefix('{') {
        Some(list) => list.split('}').next().unwrap_or_default().split(',').collect(),
        None => vec![path],
    });
    let first = |path: &str| {
        let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
        path.trim().split(|c| !is_of_name(c)).next().unwrap_or_default().to_owned()
    };
    paths.map(first).filter(|name| !name.is_empty()).collect()
}

/// The modules that are left when those that use none of the others are taken away, again and again.
fn circle(mut uses: BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    loop {
        let left: BTreeSet<_> = uses.keys().cloned().collect();
        uses.retain(|_, used| !used.is_disjoint(&left));
        if uses.len() == left.len() {
            return left;
        }
    }
}

#[test]
fn no_module_uses_one_that_uses_it() {
    for library in LAYERED {
        let uses = uses(&workspace_root().join(format!("shared/{library}/src")));
        for (module, used) in &uses {
            let named: Vec<_> = used.iter().filter(|name| !uses.contains_key(*name)).collect();
            assert!(named.is_empty(), "{library}: {module} takes {named:?} from no module");
        }
        let circle = circle(uses);
        assert!(circle.is_empty(), "{library}: some of {circle:?} use each other");
    }
}

#[test]
fn a_circle_of_modules_is_found() {
    let uses = [
        ("top", "use crate::a::X;"),
        ("a", "use crate::{\n    b, ground\n};"),
        ("b", "fn f() { crate::a::g() }"),
        ("ground", "//! crate::top"),
    ];
    let uses = uses.map(|(module, source)| (module.to_owned(), taken(source)));
    assert_eq!(Vec::from_iter(circle(uses.into())), ["a", "b", "top"]);
}
