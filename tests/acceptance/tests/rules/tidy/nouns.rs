//! One public noun has one meaning: no two libraries have a public type of the same name.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::layers::{Crate, ROOT, is_of_name, tree};
use crate::tidy::{LIBRARIES, name, packages};

/// The types that the users of a library can name: types of public modules, and types that a public module exports.
fn nouns(library: &Crate) -> BTreeSet<String> {
    let (mut public, mut modules) = (BTreeSet::new(), vec![ROOT.to_owned()]);
    while let Some(module) = modules.pop() {
        let inner = items(&library.0[&module], &["pub mod "]).into_iter();
        let inner = inner.map(|inner| match &*module {
            ROOT => inner,
            _ => format!("{module}::{inner}"),
        });
        modules.extend(inner.filter(|it| library.0.contains_key(it)));
        public.insert(module);
    }
    let exports = public.iter().flat_map(|module| library.0[module].split("pub use ").skip(1));
    let exports = exports.flat_map(|list| tree(&mut list.chars().peekable()));
    let exports: BTreeSet<_> = exports.filter_map(|path| path.last().cloned()).collect();
    let types = |(module, code): (&String, &String)| {
        let types = items(code, &["pub struct ", "pub enum ", "pub trait ", "pub type "]);
        let is_public = public.contains(module);
        types.into_iter().filter(|it| is_public || exports.contains(it)).collect::<Vec<_>>()
    };
    library.0.iter().flat_map(types).collect()
}

/// The names of the items that begin with one of these words.
fn items(code: &str, begins: &[&str]) -> Vec<String> {
    let lines = code.lines().map(str::trim_start);
    let items = lines.filter_map(|line| begins.iter().find_map(|begin| line.strip_prefix(begin)));
    items.map(|item| item.chars().take_while(|c| is_of_name(*c)).collect()).collect()
}

#[test]
fn no_two_libraries_have_a_public_type_of_the_same_name() {
    let mut of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in LIBRARIES.into_iter().flat_map(packages) {
        for noun in nouns(&Crate::read(&package.join("src"))) {
            of.entry(noun).or_default().push(name(&package));
        }
    }
    assert!(of.len() > 250, "only {} types were found", of.len());
    of.retain(|_, libraries| libraries.len() > 1);
    assert!(of.is_empty(), "say in the names what each of these types is: {of:#?}");
}

#[test]
fn a_public_type_is_in_a_public_module_or_exported_by_one() {
    let library = Crate::of(&[
        (
            ROOT,
            "pub mod open;\nmod shut;\npub use shut::{A, inner::B as C};\npub(crate) struct No;",
        ),
        (
            "open",
            "pub enum D {}\n// pub struct Said;\nstruct No;\n#[cfg(test)]\nmod tests {\n    pub struct No;",
        ),
        ("shut", "pub trait A {}\npub struct No;"),
        ("shut::inner", "pub type B<T> = T;\npub type No = u8;"),
    ]);
    assert_eq!(Vec::from_iter(nouns(&library)), ["A", "B", "D"]);
}
