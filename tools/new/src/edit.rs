//! Changes to the text of files. The text that a person wrote around them stays as it is.

use std::ops::Range;

use anyhow::{Context, Result};

/// Inserts a line before the first line that sorts after it, else after the last one. `key` returns the sort key of a
/// line, and `None` for a line of another kind.
fn insert_sorted(text: &str, line: &str, key: impl Fn(&str) -> Option<String>) -> Option<String> {
    let own = key(line)?;
    let lines: Vec<&str> = text.lines().collect();
    let keys: Vec<_> = lines.iter().map(|line| key(line)).collect();
    let later = keys.iter().position(|key| key.as_ref().is_some_and(|key| *key > own));
    let later = later.map(|at| begin_of(&lines, at));
    let after_last = || keys.iter().rposition(Option::is_some).map(|last| last + 1);
    let at = later.or_else(after_last)?;
    let lines = [&lines[..at], &[line], &lines[at..]].concat();
    Some(lines.join("\n") + "\n")
}

/// Where the attributes and comments begin that belong to a line.
fn begin_of(lines: &[&str], at: usize) -> usize {
    let belongs = |at: &usize| {
        let line = lines[*at].trim_start();
        line.starts_with("#[") || (line.starts_with("//") && !line.starts_with("//!"))
    };
    (0..at).rev().take_while(belongs).last().unwrap_or(at)
}

/// Whether the text has this name, and not only as a part of other names.
pub(crate) fn names(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// The text with more at its end, before its tests.
pub(crate) fn append(text: &str, more: &str) -> String {
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let tests = lines.iter().position(|line| line.starts_with("#[cfg(test)]"));
    let Some(tests) = tests else { return format!("{text}{more}") };
    let (before, tests) = lines.split_at(begin_of(&lines, tests));
    format!("{}\n{more}\n{}", before.concat().trim_end(), tests.concat())
}

/// Adds `pub mod <module>;` to the modules of a crate.
pub(crate) fn add_module(text: &str, module: &str) -> Result<String> {
    let line = format!("pub mod {module};");
    if text.lines().any(|found| found == line) {
        return Ok(text.to_owned());
    }
    let key = |line: &str| {
        let module = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?;
        module.strip_suffix(';').map(str::to_owned)
    };
    insert_sorted(text, &line, key).with_context(|| format!("finds no modules: write `{line}`"))
}

/// Adds `pub mod <module>;` to the module `views` of a crate. `views` is after the other modules.
pub(crate) fn add_view_module(text: &str, module: &str) -> Result<String> {
    const HEAD: &str = "pub mod views {\n";
    let line = format!("    pub mod {module};");
    if let Some(at) = text.find(HEAD) {
        let begin = at + HEAD.len();
        let end = begin + text[begin..].find("\n}").map_or(0, |end| end + 1);
        let modules = &text[begin..end];
        if modules.lines().any(|found| found == line) {
            return Ok(text.to_owned());
        }
        let key = |line: &str| line.trim().strip_prefix("pub mod ").map(str::to_owned);
        let modules = insert_sorted(modules, &line, key);
        let modules = modules.with_context(|| format!("finds no views: write `{line}`"))?;
        return Ok(format!("{}{modules}{}", &text[..begin], &text[end..]));
    }
    let is_module = |line: &str| line.starts_with("mod ") || line.starts_with("pub mod ");
    let last = text.lines().rfind(|line| is_module(line));
    let last = last.with_context(|| format!("finds no modules: write `{HEAD}{line}\n}}`"))?;
    let views = format!("{last}\n{HEAD}    //! The read models.\n\n{line}\n}}\n");
    Ok(text.replacen(&format!("{last}\n"), &views, 1))
}

/// Adds a member, such as `slice x::X;`, to the declaration of a context or of the stack, after its last of that kind.
pub(crate) fn add_member(text: &str, kind: &str, member: &str) -> Result<String> {
    let line = format!("    {kind} {member};\n");
    let missing =
        || format!("finds no declaration: write `{kind} {member};` into `ringfence::context!`");
    let begin = text.find("ringfence::context! {\n").or_else(|| text.find("ringfence::stack! {\n"));
    let begin = begin.with_context(missing)?;
    let end = begin + text[begin..].find("\n}\n").with_context(missing)? + 1;
    let declaration = &text[begin..end];
    if declaration.contains(&line) {
        return Ok(text.to_owned());
    }
    let last = |kind: &str| {
        let at = declaration.rfind(&format!("\n    {kind} "))? + 1;
        Some(begin + at + declaration[at..].find('\n')? + 1)
    };
    // The first view and the first due follow the slices, and the first slice follows the events that the context
    // reads.
    let after = match kind {
        "view" | "due" => "slice",
        _ => "reads",
    };
    let head = || declaration.find(";\n").map(|at| begin + at + 2);
    let at = last(kind).or_else(|| last(after)).or_else(head).with_context(missing)?;
    Ok(format!("{}{line}{}", &text[..at], &text[at..]))
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
    let (before, entries, after) = (&text[..range.start], &text[range.clone()], &text[range.end..]);
    let name = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned();
    if entries.lines().any(|found| name(found) == name(line)) {
        return text.to_owned();
    }
    let key = |found: &str| {
        let is_entry = found.contains('=') && !found.starts_with(['#', ' ']);
        is_entry.then(|| name(found))
    };
    let entries = insert_sorted(entries, line, key).unwrap_or_else(|| format!("{line}\n{entries}"));
    format!("{before}{entries}{after}")
}

/// Adds a program of `src/bin` to a crate's manifest. The program has no tests, so cargo does not link it again for
/// tests.
pub(crate) fn add_binary(text: &str, name: &str) -> String {
    match text.contains(&format!("[[bin]]\nname = \"{name}\"\n")) {
        true => text.to_owned(),
        false => format!("{}\n\n[[bin]]\nname = \"{name}\"\ntest = false\n", text.trim_end()),
    }
}

/// Adds a variant to an enum, or a field to a struct. `of` is its declaration, such as `enum OrderEvent`.
pub(crate) fn add_entry(text: &str, of: &str, entry: &str) -> Result<String> {
    let missing = || format!("finds no `pub {of}`: write `{entry}` into it");
    let begin = text.find(&format!("pub {of} {{")).with_context(missing)?;
    let end = begin + end_of_block(&text[begin..]).with_context(missing)?;
    let before = text[..end].trim_end();
    Ok(format!("{before}\n    {entry}\n{}", &text[end..]))
}

/// Adds an arm to the `match event` in `fn evolve`. Its event sets `field` of the state.
pub(crate) fn add_arm(text: &str, pattern: &str, field: &str) -> Result<String> {
    let missing = || format!("finds no `match event` in `fn evolve`: write an arm for `{pattern}`");
    let evolve = text.find("fn evolve(").with_context(missing)?;
    let parameter = text[evolve + "fn evolve(".len()..].split([':', ',']).next();
    let parameter = parameter.unwrap_or_default();
    let is_mut = parameter.trim().starts_with("mut ");
    let parameter = parameter.trim().trim_start_matches("mut ");
    let begin = evolve + text[evolve..].find("match event {").with_context(missing)?;
    let end = begin + end_of_block(&text[begin..]).with_context(missing)?;
    // If the function returns the parameter after the match, the arms change the parameter and have no value.
    let rest = text[end + 1..].trim_start();
    let value = match rest.starts_with(parameter) {
        true => format!("{parameter}.{field} = true,"),
        false => format!(
            "{{\n                {parameter}.{field} = true;\n                {parameter}\n            }}"
        ),
    };
    let before = text[..end].trim_end();
    let text = format!("{before}\n            {pattern} => {value}\n        {}", &text[end..]);
    Ok(if is_mut { text } else { text.replacen("fn evolve(", "fn evolve(mut ", 1) })
}

/// The place of the closing brace of the text's first block.
fn end_of_block(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
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
