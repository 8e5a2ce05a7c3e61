//! Modules are layers: in every crate, no module uses another one that uses it, directly or through others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::tidy::{files, name, packages, production};

/// The root of a crate, as a module.
pub(crate) const ROOT: &str = "";

/// The modules of a crate with their code, by their paths, such as `send::operation`.
pub(crate) struct Crate(pub(crate) BTreeMap<String, String>);

impl Crate {
    pub(crate) fn read(source: &Path) -> Self {
        let has_library = source.join("lib.rs").exists();
        let is_module = |path: &&Path| {
            if has_library && **path == source.join("main.rs") {
                return false;
            }
            let mut folders = path.strip_prefix(source).unwrap().components();
            !folders.any(|part| ["bin", "tests"].iter().any(|it| part.as_os_str() == *it))
                && !name(path).ends_with("tests.rs")
        };
        let read = |path: &Path| (path_of(source, path), code(&fs::read_to_string(path).unwrap()));
        Self(files(source, "rs").iter().map(|it| &**it).filter(is_module).map(read).collect())
    }

    /// The crate with these modules.
    pub(crate) fn of(modules: &[(&str, &str)]) -> Self {
        Self(modules.iter().map(|(path, source)| ((*path).to_owned(), code(source))).collect())
    }

    /// The other modules that each module uses. With `with_root`, the root is one of them, and it uses all others.
    fn uses(&self, with_root: bool) -> BTreeMap<String, BTreeSet<String>> {
        let exports = self.exports();
        let mut uses: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for (module, code) in &self.0 {
            let mut used: BTreeSet<_> = paths(code)
                .iter()
                .filter_map(|path| self.resolve(module, path, &exports))
                .collect();
            used.extend(self.children(module).filter(|it| names(code, last(it))).cloned());
            used.remove(module);
            uses.insert(module.clone(), used);
        }
        match with_root {
            true => drop(uses.insert(ROOT.to_owned(), self.children(ROOT).cloned().collect())),
            false => drop(uses.remove(ROOT)),
        }
        uses
    }

    fn children(&self, module: &str) -> impl Iterator<Item = &String> {
        self.0.keys().filter(move |it| *it != ROOT && parent(it) == module)
    }

    /// The modules from which the root takes names, by the names.
    fn exports(&self) -> BTreeMap<String, String> {
        let root = self.0.get(ROOT).map_or("", String::as_str);
        let lists = root.split("use ").skip(1).map(|list| tree(&mut list.chars().peekable()));
        let export = |path: Vec<String>| {
            let (name, module) = path.split_last()?;
            Some((name.clone(), self.longest(ROOT, module).0)).filter(|(_, it)| it != ROOT)
        };
        lists.flatten().filter_map(export).collect()
    }

    /// The module that a path leads to. A name that the root takes from a module leads to that module.
    fn resolve(
        &self,
        module: &str,
        path: &[String],
        exports: &BTreeMap<String, String>,
    ) -> Option<String> {
        let mut from = module.to_owned();
        let mut rest = path;
        while let [first, more @ ..] = rest {
            match &**first {
                "crate" => from = ROOT.to_owned(),
                "super" => from = parent(&from).to_owned(),
                "self" => {}
                _ => break,
            }
            rest = more;
        }
        let (found, rest) = self.longest(&from, rest);
        match rest.first() {
            Some(name) if found == ROOT => exports.get(name).cloned().or_else(|| {
                let root = self.0.get(ROOT)?;
                let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static"];
                let is_defined = kinds.iter().any(|kind| names(root, &format!("{kind} {name}")));
                is_defined.then(|| ROOT.to_owned())
            }),
            _ => Some(found).filter(|it| it != ROOT),
        }
    }

    /// The module at the beginning of a path, and the rest of the path.
    fn longest<'p>(&self, from: &str, path: &'p [String]) -> (String, &'p [String]) {
        let mut found = (from.to_owned(), path);
        while let [first, rest @ ..] = found.1 {
            let next =
                if found.0.is_empty() { first.clone() } else { format!("{}::{first}", found.0) };
            if !self.0.contains_key(&next) {
                break;
            }
            found = (next, rest);
        }
        found
    }
}

fn path_of(source: &Path, file: &Path) -> String {
    let path = file.strip_prefix(source).unwrap().with_extension("");
    let parts = path.iter().map(|part| part.to_str().unwrap());
    let parts = parts.filter(|part| !["mod", "lib", "main"].contains(part));
    parts.collect::<Vec<_>>().join("::")
}

fn parent(module: &str) -> &str {
    module.rsplit_once("::").map_or(ROOT, |(parent, _)| parent)
}

fn last(module: &str) -> &str {
    module.rsplit_once("::").map_or(module, |(_, last)| last)
}

/// The code before the tests, without comments.
fn code(source: &str) -> String {
    let lines = production(source).lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether code has this name, and not as a part of another name or at the end of another path.
fn names(code: &str, name: &str) -> bool {
    let is_it = |(at, _): (usize, &str)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        let is_path = name.contains(' ') || after.starts_with("::");
        let is_whole = !after.starts_with(is_of_name) && !before.ends_with(is_of_name);
        is_whole && is_path && !before.ends_with("::") && !before.ends_with('"')
    };
    code.match_indices(name).any(is_it)
}

/// The paths in code that begin at the crate, at the module, or at the one above.
fn paths(code: &str) -> Vec<Vec<String>> {
    let begins = ["crate::", "super::", "self::"];
    let begins = begins.iter().flat_map(|begin| code.match_indices(begin));
    let begins = begins.filter(|(at, _)| {
        let before = &code[..*at];
        !before.ends_with(is_of_name) && !before.ends_with("::") && !before.ends_with('$')
    });
    begins.flat_map(|(at, _)| tree(&mut code[at..].chars().peekable())).collect()
}

/// The paths of a `use`: `a::{b, c::d}` has two.
pub(crate) fn tree(code: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Vec<Vec<String>> {
    let mut path = Vec::new();
    loop {
        while code.next_if(|c| c.is_whitespace()).is_some() {}
        if code.next_if_eq(&'{').is_some() {
            let mut paths = Vec::new();
            loop {
                while code.next_if(|c| c.is_whitespace() || *c == ',').is_some() {}
                if code.next_if_eq(&'}').is_some() || code.peek().is_none() {
                    return paths;
                }
                let more = tree(code).into_iter().map(|more| [&path[..], &more].concat());
                paths.extend(more);
                // A name after `as`, or text that is not a path.
                while code.next_if(|c| ![',', '}'].contains(c)).is_some() {}
            }
        }
        let mut name = String::new();
        while let Some(c) = code.next_if(|c| is_of_name(*c) || *c == '*') {
            name.push(c);
        }
        if name.is_empty() {
            return vec![path];
        }
        path.push(name);
        if code.next_if_eq(&':').is_none() || code.next_if_eq(&':').is_none() {
            return vec![path];
        }
    }
}

/// The modules in circles: repeatedly removes modules that use no others, and modules that no others use.
fn circle(mut uses: BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    loop {
        let left: BTreeSet<_> = uses.keys().cloned().collect();
        let used: BTreeSet<_> = uses.values().flatten().cloned().collect();
        uses.retain(|module, uses| used.contains(module) && !uses.is_disjoint(&left));
        if uses.len() == left.len() {
            return left;
        }
    }
}

#[test]
fn no_module_uses_one_that_uses_it() {
    let mut circles = BTreeMap::new();
    let rooms = [
        ("shared", true),
        ("shared/compat", true),
        ("tools", true),
        ("functions", false),
        ("projects/functions", false),
        ("starter/functions", false),
        ("tests", false),
    ];
    for (room, with_root) in rooms {
        for package in packages(room) {
            let circle = circle(Crate::read(&package.join("src")).uses(with_root));
            if !circle.is_empty() {
                circles.insert(format!("{room}/{}", name(&package)), circle);
            }
        }
    }
    assert!(circles.is_empty(), "some of these use each other: {circles:#?}");
}

#[test]
fn a_circle_of_modules_is_found() {
    let circle_of = |modules: &[(&str, &str)], with_root| {
        Vec::from_iter(circle(Crate::of(modules).uses(with_root)))
    };
    let with = |ground: &'static str| {
        [
            (ROOT, "mod a;\npub use a::{X, b::{self, Y}};\npub trait Own {}"),
            ("top", "use crate::X;"),
            ("a", "mod b;\nuse crate::{\n    ground, ground::G as H\n};\nfn f() { b::g() }"),
            ("a::b", "use crate::ground::G;"),
            ("ground", ground),
        ]
    };
    assert!(circle_of(&with("//! crate::a"), true).is_empty());
    // By the name of a module, by a name that the root takes from it, from the module above, and from the root itself.
    assert_eq!(circle_of(&with("fn f() { crate::a::f() }"), true), ["a", "a::b", "ground"]);
    assert_eq!(circle_of(&with("use crate::{Y};"), true), ["a::b", "ground"]);
    assert_eq!(circle_of(&with("use super::top;"), true), ["a", "a::b", "ground", "top"]);
    assert_eq!(circle_of(&with("use crate::Own;"), true), ["", "a", "a::b", "ground", "top"]);
    assert!(circle_of(&with("use crate::Own;"), false).is_empty());
}
