//! The subjects of personal data: `#[subject]` and `#[personal(of = "…")]` on the fields of events and commands.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Field, Ident, LitStr, Meta, Result, ext::IdentExt, spanned::Spanned};

use crate::types::{is_personal, outer_type, serde_options};

/// The fields that name the subjects.
#[derive(Default)]
pub(crate) struct Subjects {
    of_all: Option<Ident>,
    /// Fields with personal data, each with the field of its subject.
    of_fields: Vec<(Ident, Ident)>,
}

impl Subjects {
    pub(crate) fn of(fields: &[Field]) -> Result<Self> {
        let mut subjects = Self::default();
        let named = |name: &str| {
            fields.iter().find(|field| field.ident.as_ref().is_some_and(|ident| ident == name))
        };
        for field in fields {
            let ident = field.ident.clone().expect("named fields have names");
            for attribute in &field.attrs {
                if attribute.path().is_ident("subject") {
                    attribute.meta.require_path_only()?;
                    check_subject(field)?;
                    if subjects.of_all.replace(ident.clone()).is_some() {
                        let error = "a type has one `#[subject]`; mark the other's data \
                                     `#[personal(of = \"…\")]`";
                        return Err(syn::Error::new_spanned(attribute, error));
                    }
                } else if attribute.path().is_ident("personal") {
                    let mut of: Option<LitStr> = None;
                    attribute.parse_nested_meta(|meta| match meta.path.is_ident("of") {
                        true => {
                            of = Some(meta.value()?.parse()?);
                            Ok(())
                        }
                        false => Err(meta.error("expected `of = \"…\"`")),
                    })?;
                    let of = of.ok_or_else(|| {
                        syn::Error::new_spanned(attribute, "expected `#[personal(of = \"…\")]`")
                    })?;
                    let Some(subject) = named(&of.value()) else {
                        return Err(syn::Error::new(of.span(), "there is no such field"));
                    };
                    check_subject(subject)?;
                    let subject = subject.ident.clone().expect("named fields have names");
                    subjects.of_fields.push((ident.clone(), subject));
                }
            }
        }
        fields.iter().try_for_each(|field| subjects.check_serde(field))?;
        let has_subject = |ident: &Ident| {
            subjects.of_all.is_some() || subjects.of_fields.iter().any(|(field, _)| field == ident)
        };
        let lacks = |field: &&Field| {
            is_personal(&field.ty) && field.ident.as_ref().is_some_and(|ident| !has_subject(ident))
        };
        match fields.iter().find(lacks) {
            None => Ok(subjects),
            Some(field) => Err(syn::Error::new(
                field.span(),
                "nobody knows whose data this is: mark the field of the person's id `#[subject]`, or this field \
                 `#[personal(of = \"…\")]` with the name of that field",
            )),
        }
    }

    /// The subject of a value is found by the names of both fields, so they are those that the derive gives them.
    fn check_serde(&self, field: &Field) -> Result<()> {
        let mut named = self.of_all.iter().chain(self.of_fields.iter().flat_map(|(a, b)| [a, b]));
        let is_named = named.any(|ident| field.ident.as_ref() == Some(ident));
        let kept = ["default", "alias", "skip_serializing_if"];
        let is_out = |option: &Meta| match is_named || is_personal(&field.ty) {
            true => !kept.iter().any(|name| option.path().is_ident(name)),
            // Another field could take the subject's name.
            false if self.of_all.is_none() && self.of_fields.is_empty() => false,
            false => option.path().is_ident("rename") || option.path().is_ident("flatten"),
        };
        match serde_options(&field.attrs)?.iter().find(|option| is_out(option)) {
            None => Ok(()),
            Some(option) => Err(syn::Error::new_spanned(
                option,
                "the subject of personal data is found by the names and the JSON of the fields, so this would hide it: \
                 remove it",
            )),
        }
    }

    /// The value for the trait's constant.
    pub(crate) fn value(&self) -> TokenStream {
        let of_all = match self.of_all.as_ref().map(json) {
            None => quote!(::std::option::Option::None),
            Some(name) => quote!(::std::option::Option::Some(#name)),
        };
        let of_fields = self.of_fields.iter().map(|(field, of)| {
            let (field, of) = (json(field), json(of));
            quote!((#field, #of))
        });
        quote!(::ringfence::__private::Subjects { of_all: #of_all, of_fields: &[#(#of_fields),*] })
    }
}

/// The name of a field in JSON, by serde's rule of `camelCase`.
fn json(ident: &Ident) -> String {
    let mut name = String::new();
    for word in ident.unraw().to_string().split('_') {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| match name.is_empty() {
            true => letter.to_ascii_lowercase(),
            false => letter.to_ascii_uppercase(),
        });
        name.extend(first.into_iter().chain(letters));
    }
    name
}

/// No id as text.
const NO_SUBJECTS: [&str; 18] = [
    "Option", "Vec", "List", "bool", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize",
    "u8", "u16", "u32", "u64", "u128", "usize",
];

/// A subject is one id, in clear.
fn check_subject(field: &Field) -> Result<()> {
    let is_one = outer_type(&field.ty).is_none_or(|ty| !NO_SUBJECTS.iter().any(|it| ty == it));
    match is_one && !is_personal(&field.ty) {
        true => Ok(()),
        false => Err(syn::Error::new(
            field.ty.span(),
            "a subject is one id, as text: not a list, not an option, not a number, and not personal",
        )),
    }
}
