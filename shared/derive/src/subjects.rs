//! The subjects of personal data: `#[subject]` and `#[personal(of = "…")]` on the fields of events and commands.

use heck::ToLowerCamelCase;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Field, Ident, LitStr, Result, spanned::Spanned};

use crate::types::{is_personal, outer_type};

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

    /// The value for the trait's constant.
    pub(crate) fn value(&self) -> TokenStream {
        let json = |ident: &Ident| ident.to_string().to_lower_camel_case();
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

/// A subject is one id, in clear.
fn check_subject(field: &Field) -> Result<()> {
    let is_one =
        outer_type(&field.ty).is_none_or(|ty| ty != "Option" && ty != "Vec" && ty != "List");
    match is_one && !is_personal(&field.ty) {
        true => Ok(()),
        false => Err(syn::Error::new(
            field.ty.span(),
            "a subject is one id: not a list, not an option, and not personal",
        )),
    }
}
