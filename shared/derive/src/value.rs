//! `value`: the JSON of a value type, and its declared shape.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Fields, Ident, Result, Visibility};

use crate::field::check_option;
use crate::types::serde_options;

pub(crate) fn value(item: &DeriveInput) -> Result<TokenStream> {
    let has_names = |fields: &Fields| matches!(fields, Fields::Named(_));
    let rename = match &item.data {
        Data::Struct(data) if has_names(&data.fields) => Some("rename_all"),
        Data::Enum(data) if data.variants.iter().any(|variant| has_names(&variant.fields)) => {
            Some("rename_all_fields")
        }
        _ => None,
    };
    let given = serde_options(&item.attrs)?;
    let has = |name: &str| given.iter().any(|meta| meta.path().is_ident(name));
    let rename = rename.filter(|rename| !has(rename));
    let rename = rename.map(|rename| {
        let rename = format_ident!("{rename}");
        quote!(#[serde(#rename = "camelCase")])
    });
    // With a comment, `schemars` declares some types in another form, so the mirror has none.
    let mut bare = item.clone();
    bare.vis = Visibility::Inherited;
    bare.ident = format_ident!("__Shape");
    let mut own = item.clone();
    for attributes in attributes(&mut bare)? {
        attributes.retain(|it| is_named(it, &["serde", "schemars"]));
    }
    let text = item.ident.to_string();
    let declared = declared(&item.ident, &bare.ident);
    // A mirror of a generic type would need the bounds of its derive, and one with `default` the type's own `Default`.
    let (also, mirror) = match item.generics.params.is_empty() && !has("default") {
        false => (
            quote!(#[derive(::ringfence::__private::schemars::JsonSchema)]
                   #[schemars(crate = "::ringfence::__private::schemars")]),
            quote!(),
        ),
        true => {
            for attributes in attributes(&mut own)? {
                attributes.retain(|it| !is_named(it, &["schemars"]));
            }
            let mirror = quote! {
                const _: () = {
                    use ::ringfence::__private::schemars as __schemars;

                    #[derive(__schemars::JsonSchema)]
                    #[schemars(crate = "::ringfence::__private::schemars", rename = #text)]
                    #rename
                    #[allow(dead_code)] // only its shape is used
                    #bare

                    #declared
                };
            };
            (quote!(), mirror)
        }
    };
    Ok(quote! {
        #[derive(::ringfence::__private::serde::Serialize, ::ringfence::__private::serde::Deserialize)]
        #[serde(crate = "::ringfence::__private::serde")]
        #also
        #rename
        #own
        #mirror
    })
}

/// Declares the shape of a type, which a mirror has.
pub(crate) fn declared(name: &Ident, mirror: &Ident) -> TokenStream {
    quote! {
        impl __schemars::JsonSchema for #name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                #mirror::schema_name()
            }

            fn schema_id() -> ::std::borrow::Cow<'static, str> {
                #mirror::schema_id()
            }

            fn json_schema(generator: &mut __schemars::SchemaGenerator) -> __schemars::Schema {
                #mirror::json_schema(generator)
            }

            fn _schemars_private_is_option() -> bool {
                #mirror::_schemars_private_is_option()
            }
        }
    }
}

/// The attributes of a type, its variants and its fields.
fn attributes(item: &mut DeriveInput) -> Result<Vec<&mut Vec<Attribute>>> {
    let mut all = vec![&mut item.attrs];
    let fields: Vec<_> = match &mut item.data {
        Data::Struct(data) => vec![&mut data.fields],
        Data::Enum(data) => {
            let parts = data.variants.iter_mut().map(|it| (&mut it.attrs, &mut it.fields));
            let (attributes, fields): (Vec<_>, Vec<_>) = parts.unzip();
            all.extend(attributes);
            fields
        }
        Data::Union(_) => Vec::new(),
    };
    for field in fields.into_iter().flat_map(Fields::iter_mut) {
        check_option(field)?;
        all.push(&mut field.attrs);
    }
    Ok(all)
}

fn is_named(attribute: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attribute.path().is_ident(name))
}
