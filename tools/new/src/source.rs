//! A source, the types of events in it, the next version of one, and the version that it writes. `syn` finds the place of
//! each part. Everything else that a person wrote stays as it is.

use std::ops::Range;

use anyhow::{Context, Result, anyhow, ensure};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::token::Bracket;
use syn::{
    Attribute, Expr, ExprAssign, ExprLit, Field, Item, ItemMod, ItemStruct, Lit, Meta, Path, Token,
};

/// The possible names of the module for the tests of a file.
const TESTS: [&str; 2] = ["tests", "upcast_tests"];

/// The text with these edits: each range gets another text.
pub(crate) fn apply(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let (mut edited, mut copied) = (String::new(), 0);
    for (range, more) in edits {
        edited += &text[copied..range.start];
        edited += &more;
        copied = range.end;
    }
    edited + &text[copied..]
}

/// A type that derives `Event`.
pub(crate) struct EventType {
    /// Its name in Rust.
    pub(crate) name: String,
    /// Its name in the log.
    pub(crate) stored: String,
    /// Its newest version, from 1 on.
    pub(crate) version: u32,
    /// The number of its upcasts.
    pub(crate) upcasts: usize,
    /// The older version that it writes.
    pub(crate) writes: Option<u32>,
    pub(crate) fields: Vec<EventField>,
}

/// A field of an event.
pub(crate) struct EventField {
    pub(crate) name: String,
    /// Its type, as it is written.
    pub(crate) of: String,
    /// Whether it is marked `#[tag(partition)]`.
    pub(crate) is_partition: bool,
}

/// The parts that a next version adds to a source.
pub(crate) struct Version<'a> {
    /// The name of the upcast.
    pub(crate) upcast: &'a str,
    /// The name of the downcast.
    pub(crate) downcast: &'a str,
    /// Their functions.
    pub(crate) functions: &'a str,
    /// Their test.
    pub(crate) test: &'a str,
}

/// A source, as text and as parsed code.
pub(crate) struct Source<'t> {
    text: &'t str,
    file: syn::File,
}

/// The declaration of a type of events.
struct Declaration<'f> {
    item: &'f ItemStruct,
    /// The items of its module, or of the whole source.
    beside: &'f [Item],
    /// The end of that module.
    end: usize,
}

impl<'t> Source<'t> {
    /// # Errors
    /// The text isn't Rust.
    pub(crate) fn new(text: &'t str) -> Result<Self> {
        // `syn` leaves out both, so its positions would not be those of the text.
        let is_plain =
            !text.starts_with('\u{feff}') && (!text.starts_with("#!") || text.starts_with("#!["));
        ensure!(is_plain, "line 1: a source begins with a byte order mark or `#!`: remove it");
        let file = syn::parse_file(text).map_err(|error| {
            anyhow!("line {}: {error}: correct it until it compiles", error.span().start().line)
        })?;
        Ok(Self { text, file })
    }

    /// The items of the source.
    pub(crate) fn items(&self) -> &[Item] {
        &self.file.items
    }

    /// The types of events, in their order.
    pub(crate) fn events(&self) -> Vec<EventType> {
        self.declarations().iter().filter_map(|found| self.event(found.item)).collect()
    }

    fn declarations(&self) -> Vec<Declaration<'_>> {
        let mut found = Vec::new();
        declarations(&self.file.items, self.text.len(), &mut found);
        found
    }

    fn event(&self, item: &ItemStruct) -> Option<EventType> {
        let name = item.ident.to_string();
        let version = match option(item, "version") {
            Some(Lit::Int(version)) => version.base10_parse().ok()?,
            _ => 1,
        };
        let stored = match option(item, "stored_as") {
            Some(Lit::Str(stored)) => stored.value(),
            _ => name.clone(),
        };
        let field = |field: &Field| {
            let tags = all::<Meta>(&field.attrs, "tag");
            Some(EventField {
                name: field.ident.as_ref()?.to_string(),
                of: self.text[field.ty.span().byte_range()].to_owned(),
                is_partition: tags.iter().any(|tag| tag.path().is_ident("partition")),
            })
        };
        let fields = item.fields.iter().filter_map(field).collect();
        let writes = entries(item, "write").first().and_then(|(number, _)| *number);
        let upcasts = entries(item, "upcast").len();
        Some(EventType { name, stored, version, upcasts, writes, fields })
    }

    fn declaration(&self, event: &EventType) -> Result<Declaration<'_>> {
        let found = self.declarations().into_iter().find(|found| found.item.ident == event.name);
        found.with_context(|| format!("finds no type of events {}", event.name))
    }

    /// The source with the next version of a type: its number, its upcast, its downcast, and a test.
    ///
    /// # Errors
    /// The source has no such type, or has a function of the name of one of these.
    pub(crate) fn with_version(&self, event: &EventType, next: &Version<'_>) -> Result<String> {
        let Version { upcast, downcast, functions, test } = next;
        let (from, version) = (event.version, event.version + 1);
        let Declaration { item, beside, end } = self.declaration(event)?;
        for name in [upcast, downcast] {
            let path = syn::parse_str(name)?;
            ensure!(
                function_of(beside, &path).is_none(),
                "has a function {name} already: give it another name, because the command writes one of this name"
            );
        }
        let mut edits = Vec::new();
        let mut lines = String::new();
        match (option(item, "version"), item.attrs.iter().find_map(|it| arguments(it, "event"))) {
            (Some(number), _) => edits.push((number.span().byte_range(), version.to_string())),
            (None, Some(options)) => {
                let comma = if self.text[options.clone()].trim().is_empty() { "" } else { ", " };
                edits.push((options.start..options.start, format!("version = {version}{comma}")));
            }
            (None, None) => lines += &format!("\n#[event(version = {version})]"),
        }
        match item.attrs.iter().rev().find_map(|it| Some((it, arguments(it, "upcast")?))) {
            Some((attribute, inside)) => {
                let entries = listed::<Expr>(attribute).unwrap_or_default();
                let last = entries.to_token_stream().into_iter().last();
                let at = last.map_or(inside.start, |last| last.span().byte_range().end);
                let entry = match (entries.is_empty(), entries.trailing_punct()) {
                    (true, _) => format!("{from} = {upcast}"),
                    (_, true) => format!(" {from} = {upcast},"),
                    (_, false) => format!(", {from} = {upcast}"),
                };
                edits.push((at..at, entry));
            }
            None => lines += &format!("\n#[upcast({from} = {upcast})]"),
        }
        lines += &format!("\n#[write({from} = {downcast})]");
        // Doc comments are attributes as well.
        let attributes = item.attrs.iter().filter(|it| !it.path().is_ident("doc"));
        let after = attributes.map(|it| end_of(it.bracket_token)).next_back().unwrap_or_default();
        edits.push((after..after, lines));
        // The functions follow the previous upcast, or the type if the previous one is elsewhere.
        let before = entries(item, "upcast").pop();
        let before = before.and_then(|(_, path)| Some(function_of(beside, &path)?.end));
        let after = before.unwrap_or_else(|| item.span().byte_range().end);
        edits.push((after..after, format!("\n\n{functions}")));
        match TESTS.iter().find_map(|name| inline(module(beside, name)?)) {
            Some(closing) => edits.push((closing..closing, format!("\n{test}\n"))),
            None => {
                // A declared module without a block has its own file.
                let is_free = |name: &&&str| module(beside, name).is_none();
                let name = TESTS.iter().find(is_free).unwrap_or(&TESTS[0]);
                let trimmed = self.text[..end].trim_end().len();
                let module = format!("\n\n#[cfg(test)]\nmod {name} {{\n{test}\n}}\n");
                edits.push((trimmed..end, module));
            }
        }
        Ok(apply(self.text, edits))
    }

    /// The source with a type that writes its newest version: without `#[write(…)]`, and without the downcast if
    /// nothing else names it.
    ///
    /// # Errors
    /// The source has no such type.
    pub(crate) fn without_write(&self, event: &EventType) -> Result<String> {
        let Declaration { item, beside, .. } = self.declaration(event)?;
        let attributes = item.attrs.iter().filter(|it| it.path().is_ident("write"));
        let mut gone: Vec<_> = attributes.map(|it| it.span().byte_range()).collect();
        for (_, path) in entries(item, "write") {
            // The attribute and the function itself.
            let is_only_here = path
                .get_ident()
                .is_some_and(|name| self.text.matches(&name.to_string()).count() == 2);
            gone.extend(function_of(beside, &path).filter(|_| is_only_here));
        }
        // With the line breaks before it.
        let start = |at: usize| self.text[..at].trim_end().len();
        let edits = gone.into_iter().map(|range| (start(range.start)..range.end, String::new()));
        Ok(apply(self.text, edits.collect()))
    }
}

/// Adds the types of events among these items, and in their modules.
fn declarations<'f>(items: &'f [Item], end: usize, found: &mut Vec<Declaration<'f>>) {
    for item in items {
        match item {
            Item::Struct(item) if derives_event(item) => {
                found.push(Declaration { item, beside: items, end });
            }
            Item::Mod(inner) => {
                if let Some((_, items)) = &inner.content {
                    declarations(items, inline(inner).unwrap_or(end), found);
                }
            }
            _ => {}
        }
    }
}

fn derives_event(item: &ItemStruct) -> bool {
    let is_event = |path: &Path| path.segments.last().is_some_and(|last| last.ident == "Event");
    all(&item.attrs, "derive").iter().any(is_event)
}

/// The value of an option in `#[event(…)]`: `version = 3` among others.
fn option(item: &ItemStruct, name: &str) -> Option<Lit> {
    all::<Meta>(&item.attrs, "event").into_iter().find_map(|option| match option {
        Meta::NameValue(option) if option.path.is_ident(name) => match option.value {
            Expr::Lit(value) => Some(value.lit),
            _ => None,
        },
        _ => None,
    })
}

/// The versions and functions in `#[upcast(…)]` or `#[write(…)]`, in their order.
fn entries(item: &ItemStruct, name: &str) -> Vec<(Option<u32>, Path)> {
    let number = |left| match left {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        _ => None,
    };
    let entry = |entry| match entry {
        Expr::Assign(ExprAssign { left, right, .. }) => match *right {
            Expr::Path(path) => Some((number(*left), path.path)),
            _ => None,
        },
        _ => None,
    };
    all(&item.attrs, name).into_iter().filter_map(entry).collect()
}

/// The entries in the parentheses of all attributes of this name.
fn all<T: syn::parse::Parse>(attributes: &[Attribute], name: &str) -> Vec<T> {
    let named = attributes.iter().filter(|it| it.path().is_ident(name));
    named.filter_map(listed).flatten().collect()
}

fn listed<T: syn::parse::Parse>(attribute: &Attribute) -> Option<Punctuated<T, Token![,]>> {
    attribute.parse_args_with(Punctuated::parse_terminated).ok()
}

/// The inside of the parentheses of an attribute of this name.
fn arguments(attribute: &Attribute, name: &str) -> Option<Range<usize>> {
    let list = attribute.meta.require_list().ok().filter(|list| list.path.is_ident(name))?;
    let delimiters = list.delimiter.span();
    Some(delimiters.open().byte_range().end..delimiters.close().byte_range().start)
}

fn end_of(bracket: Bracket) -> usize {
    bracket.span.close().byte_range().end
}

/// The place of the function of this path.
fn function_of(items: &[Item], path: &Path) -> Option<Range<usize>> {
    items.iter().find_map(|item| match item {
        Item::Fn(function) if path.is_ident(&function.sig.ident) => {
            Some(function.span().byte_range())
        }
        _ => None,
    })
}

fn module<'f>(items: &'f [Item], name: &str) -> Option<&'f ItemMod> {
    items.iter().find_map(|item| match item {
        Item::Mod(module) if module.ident == name => Some(module),
        _ => None,
    })
}

/// The closing brace of a module's block; `None` for a module in another file.
fn inline(module: &ItemMod) -> Option<usize> {
    module.content.as_ref().map(|(brace, _)| brace.span.close().byte_range().start)
}
