//! Finds the types of events in a source, whatever stands around them.

use std::ops::Range;

/// The names of the module for the tests of a file.
const TESTS: [&str; 2] = ["tests", "upcast_tests"];

/// A type that derives `Event`.
#[derive(Debug)]
pub(crate) struct EventType {
    /// Its name in Rust.
    pub(crate) name: String,
    /// Its name in the log.
    pub(crate) stored: String,
    /// Its newest version, from 1 on.
    pub(crate) version: u32,
    /// The paths of its upcasts, in the order of versions.
    pub(crate) upcasts: Vec<String>,
    /// Where the number of the version is, if it is there.
    number: Option<Range<usize>>,
    /// What is in the parentheses of `#[event(…)]`.
    options: Option<Range<usize>>,
    /// What is in those of the last `#[upcast(…)]`.
    upcast: Option<Range<usize>>,
    /// The end of its last attribute.
    attributes_end: usize,
    /// Its item, from the first attribute on.
    item: Range<usize>,
}

/// An attribute.
struct Attribute {
    name: String,
    /// What is in its parentheses.
    arguments: Option<Range<usize>>,
    range: Range<usize>,
}

/// A source, and its text with spaces in place of comments and literals. Both have the same positions.
pub(crate) struct Source<'t> {
    text: &'t str,
    code: String,
}

impl<'t> Source<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let mut code = text.as_bytes().to_vec();
        let mut at = 0;
        while at < code.len() {
            let end = end_of_no_code(text.as_bytes(), at);
            for byte in &mut code[at..end] {
                *byte = if *byte == b'\n' { b'\n' } else { b' ' };
            }
            at = end.max(at + 1);
        }
        let code = String::from_utf8(code).expect("comments and literals are whole texts");
        Self { text, code }
    }

    /// Its types of events, in their order.
    pub(crate) fn events(&self) -> Vec<EventType> {
        let structs = words(&self.code, 0..self.code.len()).filter(|(_, word)| *word == "struct");
        structs.filter_map(|(at, _)| self.event(at)).collect()
    }

    /// The type that is declared at the word `struct`, if it is one of events.
    fn event(&self, at: usize) -> Option<EventType> {
        let (begin, name) = words(&self.code, at + "struct".len()..self.code.len()).next()?;
        let attributes = self.attributes(at);
        let of = |name: &'static str| attributes.iter().filter(move |found| found.name == name);
        let has = |found: &Attribute, word| {
            let arguments = found.arguments.clone().unwrap_or_default();
            words(&self.code, arguments).any(|(_, found)| found == word)
        };
        of("derive").find(|derive| has(derive, "Event"))?;
        let options = || of("event").filter_map(|found| found.arguments.clone());
        let value = |option| options().find_map(|arguments| self.value(arguments, option));
        let number = value("version");
        let version = number.clone().map_or(Some(1), |at| self.code[at].parse().ok())?;
        let stored = value("stored_as").and_then(|at| self.text[at].split('"').nth(1));
        let mut upcasts = of("upcast").filter_map(|found| found.arguments.clone());
        let entries = upcasts.clone().flat_map(|arguments| self.code[arguments].split(','));
        let path = |entry: &str| Some(entry.split_once('=')?.1.trim().to_owned());
        Some(EventType {
            name: name.to_owned(),
            stored: stored.unwrap_or(name).to_owned(),
            version,
            upcasts: entries.filter_map(path).collect(),
            number,
            options: options().next(),
            upcast: upcasts.next_back(),
            attributes_end: attributes.last()?.range.end,
            item: attributes.first()?.range.start..self.end_of_item(begin)?,
        })
    }

    /// The attributes before an item, in their order.
    fn attributes(&self, item: usize) -> Vec<Attribute> {
        let mut found = Vec::new();
        let mut before = self.code[..item].trim_end();
        if let Some(open) = before.ends_with(')').then(|| opening(before)).flatten() {
            // It is `pub(crate)` or the like.
            before = before[..open].trim_end();
        }
        before = before.strip_suffix("pub").unwrap_or(before).trim_end();
        while let Some(open) = before.ends_with(']').then(|| opening(before)).flatten() {
            let Some(head) = before[..open].trim_end().strip_suffix('#') else { break };
            let range = head.len()..before.len();
            let inside = &before[open + 1..before.len() - 1];
            let name = inside.split('(').next().unwrap_or_default().trim().to_owned();
            let arguments = inside.find('(').zip(inside.rfind(')'));
            let arguments = arguments.map(|(begin, end)| open + 1 + begin + 1..open + 1 + end);
            found.push(Attribute { name, arguments, range });
            before = head.trim_end();
        }
        found.reverse();
        found
    }

    /// Where the value of an option is: `version = 3` among others.
    fn value(&self, arguments: Range<usize>, option: &str) -> Option<Range<usize>> {
        let (at, _) = words(&self.code, arguments.clone()).find(|(_, word)| *word == option)?;
        let equals = at + option.len() + self.code[at + option.len()..arguments.end].find('=')?;
        let end = self.code[equals..arguments.end].find(',').map(|comma| equals + comma);
        let value = &self.text[equals + 1..end.unwrap_or(arguments.end)];
        let begin = equals + 1 + (value.len() - value.trim_start().len());
        Some(begin..begin + value.trim().len())
    }

    /// The end of an item, after its block or its semicolon.
    fn end_of_item(&self, at: usize) -> Option<usize> {
        let first = at + self.code[at..].find(['{', ';', '('])?;
        match self.code.as_bytes()[first] {
            b';' => Some(first + 1),
            b'(' => Some(closing(&self.code, first)? + 1 + self.code[first..].find(';')?),
            _ => Some(closing(&self.code, first)? + 1),
        }
    }

    /// The inside of the block that a position is in, or the whole source.
    fn scope(&self, at: usize) -> Range<usize> {
        let mut open = Vec::new();
        for (at, c) in self.code[..at].char_indices() {
            match c {
                '{' => open.push(at),
                '}' => drop(open.pop()),
                _ => {}
            }
        }
        let block = open.last().and_then(|open| Some(open + 1..closing(&self.code, *open)?));
        block.unwrap_or(0..self.code.len())
    }

    /// Where the name of a module or a function is declared in a scope.
    fn declared(&self, scope: &Range<usize>, keyword: &str, name: &str) -> Option<usize> {
        let mut words = words(&self.code, scope.clone()).peekable();
        while let Some((at, word)) = words.next() {
            let next = words.peek().filter(|(_, next)| word == keyword && *next == name);
            if let Some((begin, _)) = next.filter(|_| self.scope(at) == *scope) {
                return Some(*begin);
            }
        }
        None
    }

    /// Where the block of a module or a function of a scope is closed.
    fn closing_of(&self, scope: &Range<usize>, keyword: &str, name: &str) -> Option<usize> {
        let begin = self.declared(scope, keyword, name)?;
        let open = begin + self.code[begin..].find(['{', ';'])?;
        closing(&self.code, open).filter(|_| self.code[open..].starts_with('{'))
    }

    /// The source with the next version of a type: its number, its upcast, and a test.
    pub(crate) fn with_version(&self, event: &EventType, next: &Version<'_>) -> String {
        let Version { upcast, function, test } = next;
        let (from, version) = (event.version, event.version + 1);
        let mut edits = Vec::new();
        let mut lines = String::new();
        match (&event.number, &event.options) {
            (Some(number), _) => edits.push((number.clone(), version.to_string())),
            (None, Some(options)) => {
                let comma = if self.code[options.clone()].trim().is_empty() { "" } else { ", " };
                edits.push((options.start..options.start, format!("version = {version}{comma}")));
            }
            (None, None) => lines += &format!("\n#[event(version = {version})]"),
        }
        match &event.upcast {
            Some(entries) => {
                let found = self.code[entries.clone()].trim_end();
                let entry = match found.chars().last() {
                    None => format!("{from} = {upcast}"),
                    Some(',') => format!(" {from} = {upcast},"),
                    Some(_) => format!(", {from} = {upcast}"),
                };
                let end = entries.start + found.len();
                edits.push((end..end, entry));
            }
            None => lines += &format!("\n#[upcast({from} = {upcast})]"),
        }
        edits.push((event.attributes_end..event.attributes_end, lines));
        let scope = self.scope(event.item.start);
        // After the one before it, which a path may have elsewhere.
        let before = event.upcasts.last().and_then(|name| self.closing_of(&scope, "fn", name));
        let end = before.map_or(event.item.end, |closing| closing + 1);
        edits.push((end..end, format!("\n\n{function}")));
        match TESTS.iter().find_map(|tests| self.closing_of(&scope, "mod", tests)) {
            Some(closing) => edits.push((closing..closing, format!("\n{test}\n"))),
            None => {
                // One that is declared has a file of its own.
                let is_free = |tests: &&&str| self.declared(&scope, "mod", tests).is_none();
                let name = TESTS.iter().find(is_free).unwrap_or(&TESTS[0]);
                let end = scope.start + self.text[scope.clone()].trim_end().len();
                let module = format!("\n\n#[cfg(test)]\nmod {name} {{\n{test}\n}}\n");
                edits.push((end..scope.end, module));
            }
        }
        edits.sort_by_key(|(range, _)| range.start);
        let (mut text, mut copied) = (String::new(), 0);
        for (range, more) in edits {
            text += &self.text[copied..range.start];
            text += &more;
            copied = range.end;
        }
        text + &self.text[copied..]
    }
}

/// What a next version adds to a source.
pub(crate) struct Version<'a> {
    /// The name of the upcast.
    pub(crate) upcast: &'a str,
    /// Its function.
    pub(crate) function: &'a str,
    /// Its test.
    pub(crate) test: &'a str,
}

/// The words of a part of the code: keywords, names and numbers, each with its position.
fn words(code: &str, part: Range<usize>) -> impl Iterator<Item = (usize, &str)> {
    let ends = |c: char| !c.is_alphanumeric() && c != '_';
    let pieces = code[part.clone()].split_inclusive(ends).scan(part.start, move |at, piece| {
        let begin = *at;
        *at += piece.len();
        Some((begin, piece.trim_end_matches(ends)))
    });
    pieces.filter(|(_, word)| !word.is_empty())
}

/// Where the bracket at `open` is closed.
fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in code[open..].char_indices() {
        depth += i32::from(matches!(c, '(' | '[' | '{')) - i32::from(matches!(c, ')' | ']' | '}'));
        if depth == 0 {
            return Some(open + at);
        }
    }
    None
}

/// Where the bracket at the end of the code is opened.
fn opening(code: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in code.char_indices().rev() {
        depth += i32::from(matches!(c, ')' | ']' | '}')) - i32::from(matches!(c, '(' | '[' | '{'));
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The end of the comment or literal that begins here; `at`, if none does.
fn end_of_no_code(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    let after = |from: usize, end: &[u8]| {
        let found = text[from.min(text.len())..].windows(end.len()).position(|part| part == end);
        found.map_or(text.len(), |found| from + found + end.len())
    };
    match rest {
        [b'/', b'/', ..] => at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => end_of_comment(text, at),
        [b'"', ..] => end_of_text(text, at),
        // A character; a lifetime has no quote at its end.
        [b'\'', b'\\', ..] => after(at + 3, b"'"),
        [b'\'', first, ..] => {
            let bytes = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            if rest.get(1 + bytes) == Some(&b'\'') { at + 2 + bytes } else { at }
        }
        [b'r', raw @ ..] => {
            let hashes = raw.iter().take_while(|byte| **byte == b'#').count();
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            // It may be `br` or `cr`, but no other word that ends in r.
            let before = text[..at].iter().rev().take_while(|byte| is_word(byte));
            let before: Vec<u8> = before.copied().collect();
            let is_raw =
                raw.get(hashes) == Some(&b'"') && matches!(&before[..], [] | [b'b' | b'c']);
            let end = [&b"\""[..], &raw[..hashes]].concat();
            if is_raw { after(at + 1 + hashes + 1, &end) } else { at }
        }
        _ => at,
    }
}

/// The end of a comment, which may have others in it.
fn end_of_comment(text: &[u8], begin: usize) -> usize {
    let (mut at, mut depth) = (begin, 0);
    while at < text.len() {
        let step = match &text[at..] {
            [b'/', b'*', ..] => 1,
            [b'*', b'/', ..] => -1,
            _ => 0,
        };
        depth += step;
        at += if step == 0 { 1 } else { 2 };
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

/// The end of a text in quotes.
fn end_of_text(text: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}
