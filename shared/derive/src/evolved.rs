//! The changes of an event type: its version, upcasts and downcast, its stored name, and whether it is retired.

use proc_macro2::Span;
use syn::{
    Attribute, Ident, LitInt, LitStr, Path, Result, Token,
    meta::ParseNestedMeta,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

/// The options of `#[event(…)]`, `#[upcast(…)]` and `#[write(…)]` about changes.
pub(crate) struct Evolved {
    version: Option<LitInt>,
    upcasts: Vec<Entry>,
    write: Vec<Entry>,
    pub(crate) stored_as: Option<String>,
    pub(crate) retired: bool,
}

/// `1 = name_is_title`: the upcast from version 1, or the downcast to it.
struct Entry {
    version: LitInt,
    function: Path,
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let version = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(Self { version, function: input.parse()? })
    }
}

/// The entries in all attributes of this name.
fn entries(attributes: &[Attribute], name: &str) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(name)) {
        entries.extend(attribute.parse_args_with(Punctuated::<_, Token![,]>::parse_terminated)?);
    }
    Ok(entries)
}

impl Evolved {
    /// The upcasts and the downcast among the attributes of a type.
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let (upcasts, write) = (entries(attributes, "upcast")?, entries(attributes, "write")?);
        Ok(Self { version: None, upcasts, write, stored_as: None, retired: false })
    }

    /// Parses an option of `#[event(…)]`, if it is about changes.
    pub(crate) fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<bool> {
        if meta.path.is_ident("version") {
            self.version = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("retired") {
            self.retired = true;
        } else if meta.path.is_ident("stored_as") {
            let name: LitStr = meta.value()?.parse()?;
            check_name(&name)?;
            self.stored_as = Some(name.value());
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// The upcasts from version 1 on. They must have no gap up to the type's version.
    pub(crate) fn upcasts(&self, name: &Ident) -> Result<Vec<&Path>> {
        let version = self.version.as_ref().map_or(Ok(1), LitInt::base10_parse::<usize>)?;
        let at = |span: Option<Span>| span.unwrap_or_else(|| name.span());
        if version == 0 {
            let span = at(self.version.as_ref().map(LitInt::span));
            return Err(syn::Error::new(span, "the first version is 1"));
        }
        for (expected, Entry { version: found, .. }) in (1..).zip(&self.upcasts) {
            if expected >= version {
                let error = format!(
                    "there is no version after {expected} to upcast to: write `#[event(version = {})]`",
                    expected + 1
                );
                return Err(syn::Error::new(found.span(), error));
            }
            if found.base10_parse::<usize>()? != expected {
                let error = format!(
                    "the upcast from version {expected} is missing here: upcasts are in the order of versions, \
                     one for each but the last"
                );
                return Err(syn::Error::new(found.span(), error));
            }
        }
        let next = self.upcasts.len() + 1;
        if next < version {
            let span = at(self.version.as_ref().map(LitInt::span));
            let error =
                format!("write how version {next} is upcast: `#[upcast(…, {next} = function)]`");
            return Err(syn::Error::new(span, error));
        }
        Ok(self.upcasts.iter().map(|from| &from.function).collect())
    }

    /// The older version that is written, and the downcast to it.
    pub(crate) fn write(&self) -> Result<Option<(u32, &Path)>> {
        let Some(Entry { version, function }) = self.write.first() else { return Ok(None) };
        let newest = self.upcasts.len() + 1;
        let refused = |span: Span, why: &str| Err(syn::Error::new(span, why));
        if self.retired {
            return refused(
                version.span(),
                "a retired type is not written: leave `#[write(…)]` out",
            );
        }
        if let Some(second) = self.write.get(1) {
            return refused(second.version.span(), "a type writes one version");
        }
        match version.base10_parse::<u32>()? {
            number if number > 0 && (number as usize) < newest => Ok(Some((number, function))),
            _ => refused(
                version.span(),
                &format!(
                    "`#[write(…)]` names an older version than the newest one, which is {newest}; without the \
                     attribute the type writes version {newest}"
                ),
            ),
        }
    }
}

/// The name is stored, and is part of the names of attributes and variables.
fn check_name(name: &LitStr) -> Result<()> {
    match syn::parse_str::<Ident>(&name.value()) {
        Ok(_) => Ok(()),
        Err(_) => Err(syn::Error::new(
            name.span(),
            "a stored name has letters, digits and underscores, as `OrderPlaced`",
        )),
    }
}
