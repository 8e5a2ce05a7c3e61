//! `value`: the JSON of a value type, and its declared shape.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Fields, Meta, Result, Token, punctuated::Punctuated};

pub(crate) fn value(item: &DeriveInput) -> Result<TokenStream> {
    let is_named = |fields: &Fields| matches!(fields, Fields::Named(_));
    let rename = match &item.data {
        Data::Struct(data) if is_named(&data.fields) => Some("rename_all"),
        Data::Enum(data) if data.variants.iter().any(|variant| is_named(&variant.fields)) => {
            Some("rename_all_fields")
        }
        _ => None,
    };
    let given = given(item)?;
    let rename = rename.filter(|rename| !given.iter().any(|meta| meta.path().is_ident(rename)));
    let rename = rename.map(|rename| {
        let rename = format_ident!("{rename}");
        quote!(#[serde(#rename = "camelCase")])
    });
    Ok(quote! {
        #[derive(
            ::ringfence::__private::serde::Serialize,
            ::ringfence::__private::serde::Deserialize,
            ::ringfence::__private::schemars::JsonSchema,
        )]
        #[serde(crate = "::ringfence::__private::serde")]
        #[schemars(crate = "::ringfence::__private::schemars")]
        #rename
        #item
    })
}

/// The options of the type's own `#[serde(…)]`.
fn given(item: &DeriveInput) -> Result<Vec<Meta>> {
    let mut given = Vec::new();
    for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        given.extend(attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?);
    }
    Ok(given)
}
