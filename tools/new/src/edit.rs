//! Changes to the text of files. `syn` finds the places in sources, so comments and the form of the text do not
//! matter. The text that a person wrote around them stays as it is.

use std::ops::Range;

use anyhow::{Context, Result};
use proc_macro2::TokenTree;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Arm, Expr, Fields, FnArg, ImplItem, Item, ItemMacro, Macro, Pat, Stmt};

use crate::source::{Source, apply};

fn insert(text: &str, at: usize, more: String) -> String {
    apply(text, vec![(at..at, more)])
}

/// Where a line begins or ends, and where the attributes and comments begin that belong to it.
fn begin_of_line(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |at| at + 1)
}

/// The end of a line with its comment. If more code follows in the line, `at` itself.
fn end_of_line(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let rest = text[at..end].trim();
    if rest.is_empty() || rest.starts_with("//") { end } else { at }
}

fn begin_with_comments(text: &str, at: usize) -> usize {
    let mut begin = begin_of_line(text, at);
    while begin > 0 {
        let before = begin_of_line(text, begin - 1);
        let line = text[before..begin].trim_start();
        let is_comment = line.starts_with("//") && !line.starts_with("//!");
        if !is_comment && !line.starts_with("#[") {
            break;
        }
        begin = before;
    }
    begin
}

/// Whether the text has this name, and not only as a part of other names.
pub(crate) fn names(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// The text with more at its end, before its tests.
pub(crate) fn append(text: &str, more: &str) -> String {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("#[cfg(test)]") {
            let (before, tests) = text.split_at(begin_with_comments(text, at));
            return format!("{}\n{more}\n{tests}", before.trim_end());
        }
        at += line.len();
    }
    format!("{text}{more}")
}

/// Adds `pub mod <module>;` to these items, which end at `end`, in the order of names.
fn with_module(text: &str, items: &[Item], module: &str, indent: &str) -> Option<String> {
    let modules = items.iter().filter_map(|item| match item {
        Item::Mod(item) if item.content.is_none() => Some((item.ident.to_string(), item.span())),
        _ => None,
    });
    let modules: Vec<_> = modules.map(|(name, span)| (name, span.byte_range())).collect();
    if modules.iter().any(|(name, _)| name == module) {
        return Some(text.to_owned());
    }
    let line = format!("{indent}pub mod {module};\n");
    match modules.iter().find(|(name, _)| **name > *module) {
        Some((_, later)) => Some(insert(text, begin_with_comments(text, later.start), line)),
        None => {
            let (_, last) = modules.last()?;
            let at = end_of_line(text, last.end);
            Some(insert(text, at, format!("\n{}", line.trim_end())))
        }
    }
}

/// Adds `pub mod <module>;` to the modules of a source.
pub(crate) fn add_module(text: &str, module: &str) -> Result<String> {
    let source = Source::new(text)?;
    with_module(text, source.items(), module, "")
        .with_context(|| format!("finds no modules: write `pub mod {module};`"))
}

/// Where the views of a crate are.
pub(crate) enum Views {
    /// In this text of the crate's `lib.rs`.
    Here(String),
    /// In their own file.
    InFile,
}

/// Adds `pub mod <module>;` to the module `views` of a crate. `views` is after the other modules.
pub(crate) fn add_view_module(text: &str, module: &str) -> Result<Views> {
    let source = Source::new(text)?;
    let modules = source.items().iter().filter_map(|item| match item {
        Item::Mod(item) => Some(item),
        _ => None,
    });
    let modules: Vec<_> = modules.collect();
    let (head, line) = ("pub mod views {\n", format!("    pub mod {module};"));
    let Some(views) = modules.iter().find(|item| item.ident == "views") else {
        let last = modules.last();
        let last = last.with_context(|| format!("finds no modules: write `{head}{line}\n}}`"))?;
        let at = end_of_line(text, last.span().byte_range().end);
        let views = format!("\n{head}    //! The read models.\n\n{line}\n}}");
        return Ok(Views::Here(insert(text, at, views)));
    };
    let Some((brace, items)) = &views.content else { return Ok(Views::InFile) };
    let added = with_module(text, items, module, "    ").unwrap_or_else(|| {
        let close = brace.span.close().byte_range().start;
        insert(text, text[..close].trim_end().len(), format!("\n{line}"))
    });
    Ok(Views::Here(added))
}

/// The declaration of a context or of the stack: `ringfence::context! { … }`.
pub(crate) fn declaration(items: &[Item]) -> Option<&Macro> {
    items.iter().find_map(|item| match item {
        Item::Macro(ItemMacro { mac, .. }) => {
            let name = &mac.path.segments.last()?.ident;
            (name == "context" || name == "stack").then_some(mac)
        }
        _ => None,
    })
}

/// Adds a member, such as `slice x::X;`, to the declaration of a context or of the stack, after its last of that kind.
pub(crate) fn add_member(text: &str, kind: &str, member: &str) -> Result<String> {
    let missing =
        || format!("finds no declaration: write `{kind} {member};` into `ringfence::context!`");
    let source = Source::new(text)?;
    let declared = declaration(source.items()).with_context(missing)?;
    // The parts between semicolons: the head, and the members. Each has its first word, its text and its end.
    let (mut parts, mut part) = (Vec::new(), Vec::<TokenTree>::new());
    for token in declared.tokens.clone() {
        if matches!(&token, TokenTree::Punct(it) if it.as_char() == ';') {
            let first = part.first().map(ToString::to_string).unwrap_or_default();
            let words: String = part.iter().skip(1).map(ToString::to_string).collect();
            parts.push((first, words, token.span().byte_range().end));
            part.clear();
        } else {
            part.push(token);
        }
    }
    if parts.iter().any(|(of, found, _)| of == kind && found == member) {
        return Ok(text.to_owned());
    }
    // The first view, due and reactor follow the slices, and the first slice follows the events that the context reads.
    let after = match kind {
        "view" | "due" | "reactor" => "slice",
        _ => "reads",
    };
    let last = |kind: &str| parts.iter().rfind(|(of, ..)| of == kind);
    let part = last(kind).or_else(|| last(after)).or(parts.first());
    let (.., end) = part.with_context(missing)?;
    Ok(insert(text, end_of_line(text, *end), format!("\n    {kind} {member};")))
}

/// The lines of a section of a TOML file, such as `dependencies`.
pub(crate) fn section<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    range_of_section(text, name).map(|range| &text[range])
}

fn range_of_section(text: &str, name: &str) -> Option<Range<usize>> {
    let head = format!("[{name}]\n");
    let begin = match text.starts_with(&head) {
        true => 0,
        false => text.find(&format!("\n{head}"))? + 1,
    } + head.len();
    let end = text[begin..].find("\n[").map_or(text.len(), |end| begin + end + 1);
    Some(begin..end)
}

/// Adds a line such as `serde.workspace = true` to a section of a TOML file, in the order of names, unless the section
/// has the name. A new section is before the programs of a crate, or at the end.
pub(crate) fn add_to_section(text: &str, name: &str, line: &str) -> String {
    let Some(range) = range_of_section(text, name) else {
        let at = text.find("\n[[bin]]").map_or(text.len(), |at| at + 1);
        let (before, after) = text.split_at(at);
        let end = if after.is_empty() { "" } else { "\n" };
        return format!("{}\n\n[{name}]\n{line}\n{end}{after}", before.trim_end());
    };
    let name = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned();
    let is_entry = |found: &str| found.contains('=') && !found.starts_with(['#', ' ']);
    let (mut at, mut place) = (range.start, range.start);
    for found in text[range].split_inclusive('\n') {
        if is_entry(found) && name(found) == name(line) {
            return text.to_owned();
        }
        if is_entry(found) && name(found) < name(line) {
            place = at + found.len();
        }
        at += found.len();
    }
    insert(text, place, format!("{line}\n"))
}

/// Adds a program of `src/bin` to a crate's manifest. The program has no tests, so cargo does not link it again for
/// tests.
pub(crate) fn add_binary(text: &str, name: &str) -> String {
    match text.contains(&format!("[[bin]]\nname = \"{name}\"\n")) {
        true => text.to_owned(),
        false => format!("{}\n\n[[bin]]\nname = \"{name}\"\ntest = false\n", text.trim_end()),
    }
}

/// The text with an entry after the last one in a block that closes at `close`.
fn with_entry<T: Spanned, P: Spanned>(
    text: &str,
    entries: &Punctuated<T, P>,
    close: usize,
    entry: &str,
) -> String {
    let pairs = entries.pairs().next_back().map(|last| {
        let comma = last.punct().map(|comma| comma.span().byte_range().end);
        (last.value().span().byte_range().end, comma)
    });
    after_last(text, pairs, close, &format!("\n    {entry}"))
}

/// The text with more after the last entry of a block, which ends there and may have a comma there.
fn after_last(
    text: &str,
    last: Option<(usize, Option<usize>)>,
    close: usize,
    more: &str,
) -> String {
    let Some((end, comma)) = last else {
        return insert(text, close, format!("{more}\n"));
    };
    let mut edits = Vec::new();
    if comma.is_none() {
        edits.push((end..end, ",".to_owned()));
    }
    let after = end_of_line(text, comma.unwrap_or(end));
    edits.push((after..after, more.to_owned()));
    if !text[after..close].contains('\n') {
        edits.push((close..close, "\n".to_owned()));
    }
    apply(text, edits)
}

/// Adds a variant to an enum, or a field to a struct. `of` is its declaration, such as `enum OrderEvent`.
pub(crate) fn add_entry(text: &str, of: &str, entry: &str) -> Result<String> {
    let source = Source::new(text)?;
    let added = source.items().iter().find_map(|item| match item {
        Item::Enum(item) if of == format!("enum {}", item.ident) => {
            let close = item.brace_token.span.close().byte_range().start;
            Some(with_entry(text, &item.variants, close, entry))
        }
        Item::Struct(item) if of == format!("struct {}", item.ident) => match &item.fields {
            Fields::Named(fields) => {
                let close = fields.brace_token.span.close().byte_range().start;
                Some(with_entry(text, &fields.named, close, entry))
            }
            _ => None,
        },
        _ => None,
    });
    added.with_context(|| format!("finds no `pub {of}`: write `{entry}` into it"))
}

/// Adds an arm to the `match event` in `fn evolve`. Its event sets `field` of the state.
pub(crate) fn add_arm(text: &str, pattern: &str, field: &str) -> Result<String> {
    let source = Source::new(text)?;
    let functions = source.items().iter().filter_map(|item| match item {
        Item::Impl(item) => Some(&item.items),
        _ => None,
    });
    let mut functions = functions.flatten().filter_map(|item| match item {
        ImplItem::Fn(item) if item.sig.ident == "evolve" => Some(item),
        _ => None,
    });
    let found = functions.find_map(|function| {
        let stmts = &function.block.stmts;
        let at = stmts
            .iter()
            .position(|it| matches!(it, Stmt::Expr(Expr::Match(it), _) if is_event(&it.expr)))?;
        let Stmt::Expr(Expr::Match(found), _) = &stmts[at] else { return None };
        Some((function.sig.inputs.first()?, found, at + 1 == stmts.len()))
    });
    let (parameter, found, is_value) = found.with_context(|| {
        format!("finds no `match event` in `fn evolve`: write an arm for `{pattern}`")
    })?;
    let (name, is_mut, at) = match parameter {
        FnArg::Receiver(it) => {
            ("self".to_owned(), it.mutability.is_some(), it.span().byte_range().start)
        }
        FnArg::Typed(it) => match &*it.pat {
            Pat::Ident(pat) => {
                (pat.ident.to_string(), pat.mutability.is_some(), pat.span().byte_range().start)
            }
            other => (other.span().source_text().unwrap_or_default(), true, 0),
        },
    };
    // If the function returns the parameter after the match, the arms change the parameter and have no value.
    let value = match is_value {
        false => format!("{name}.{field} = true,"),
        true => format!(
            "{{\n                {name}.{field} = true;\n                {name}\n            }}"
        ),
    };
    let last = found.arms.last().map(|Arm { body, comma, .. }| {
        let end = body.span().byte_range().end;
        let comma = comma.map(|comma| comma.span().byte_range().end);
        (end, comma.or_else(|| matches!(**body, Expr::Block(_)).then_some(end)))
    });
    let close = found.brace_token.span.close().byte_range().start;
    let text = after_last(text, last, close, &format!("\n            {pattern} => {value}"));
    Ok(if is_mut { text } else { insert(&text, at, "mut ".to_owned()) })
}

fn is_event(expr: &Expr) -> bool {
    matches!(expr, Expr::Path(path) if path.path.is_ident("event"))
}

#[test]
fn nothing_comes_between_an_item_and_its_attributes_and_comments() {
    let text = "mod a;\n/// Only in tests.\n#[cfg(test)]\nmod c;\n";
    let expected = "mod a;\npub mod b;\n/// Only in tests.\n#[cfg(test)]\nmod c;\n";
    assert_eq!(add_module(text, "b").unwrap(), expected);
    assert_eq!(add_module("//! A.\nmod b;\n", "a").unwrap(), "//! A.\npub mod a;\nmod b;\n");
    let text = "struct A;\n\n/// Only in tests.\n#[cfg(test)]\nmod tests;\n";
    let expected = "struct A;\n\nstruct B;\n\n/// Only in tests.\n#[cfg(test)]\nmod tests;\n";
    assert_eq!(append(text, "\nstruct B;\n"), expected);
    assert_eq!(append("struct A;\n", "\nstruct B;\n"), "struct A;\n\nstruct B;\n");
}

#[test]
fn comments_and_missing_commas_do_not_mislead_an_edit() {
    let text = "// enum E { }\npub enum E {\n    A, // }\n    B\n}\npub struct S { a: u8 }\nenum Empty {}\n";
    let expected =
        text.replace("    B\n", "    B,\n    C,\n").replace("{ a: u8 }", "{ a: u8,\n    b: u8,\n}");
    let added = add_entry(text, "enum E", "C,").unwrap();
    let added = add_entry(&added, "struct S", "b: u8,").unwrap();
    assert_eq!(added.replace(" \n}", "\n}"), expected);
    assert!(add_entry(text, "enum Empty", "A,").unwrap().ends_with("enum Empty {\n    A,\n}\n"));

    let text = "// ringfence::context! { slice c::C; }\nringfence::context! {\n    pub X, \"x\" on Dcb; // slice d::D;\n    \
                // slice b::B;\n    slice a::A; // first\n    view v::V;\n}\n";
    let expected = text.replace("first\n", "first\n    slice b::B;\n");
    assert_eq!(add_member(text, "slice", "b::B").unwrap(), expected);
    assert_eq!(add_member(text, "slice", "a::A").unwrap(), text);
    let expected = text.replace("slice d::D;\n", "slice d::D;\n    reads y::Y;\n");
    assert_eq!(add_member(text, "reads", "y::Y").unwrap(), expected);

    let text = "impl State for S {\n    fn evolve(self, event: E) -> Self {\n        // match event {\n        match event {\n            \
                E::A => self // }\n        }\n    }\n}\n";
    let added = add_arm(text, "E::B", "b").unwrap();
    let arm = "E::A => self, // }\n            E::B => {\n                self.b = true;\n                self\n            }\n        }\n";
    assert!(added.contains(arm) && added.contains("fn evolve(mut self,"), "{added}");
    let text = text.replace(
        "E::A => self // }\n        }\n",
        "E::A => self.a = true,\n        }\n        self\n",
    );
    let added = add_arm(&text, "E::B", "b").unwrap();
    assert!(
        added.contains(
            "self.a = true,\n            E::B => self.b = true,\n        }\n        self\n"
        ),
        "{added}"
    );

    assert!(matches!(
        add_view_module("mod events;\npub mod views;\n", "x").unwrap(),
        Views::InFile
    ));
}
