//! `Event` and `Command`: tags and JSON from fields.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Attribute, Data, DeriveInput, Expr, ExprLit, Ident, Lit, LitChar, LitInt, Meta, MetaNameValue,
    Result, Variant,
};

use crate::evolved::Evolved;
use crate::field::{Tag, Tagged, TaggedField, refuse_serde, tag_attributes};
use crate::value::declared;

pub(crate) fn event(input: DeriveInput) -> Result<TokenStream> {
    let mut separator = '/';
    let mut read_as_composite = false;
    let mut read_by_type = false;
    let mut fenced = false;
    let mut copies: Option<LitInt> = None;
    let mut evolved = Evolved::parse(&input.attrs)?;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("event")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("read_as_composite") {
                read_as_composite = true;
            } else if meta.path.is_ident("read_by_type") {
                read_by_type = true;
            } else if meta.path.is_ident("fenced") {
                fenced = true;
            } else if meta.path.is_ident("copies") {
                let literal: LitInt = meta.value()?.parse()?;
                if !literal.base10_parse().is_ok_and(|copies: u16| (2..=64).contains(&copies)) {
                    return Err(syn::Error::new(literal.span(), "a fence has 2 to 64 copies"));
                }
                copies = Some(literal);
            } else if meta.path.is_ident("separator") {
                let literal: LitChar = meta.value()?.parse()?;
                separator = literal.value();
                if !matches!(separator, '/' | '|' | '~' | ',') {
                    return Err(syn::Error::new(literal.span(), "a separator is one of / | ~ ,"));
                }
            } else if !evolved.take(&meta)? {
                return Err(meta.error(
                    "expected `read_as_composite`, `read_by_type`, `fenced`, `copies = …`, `separator = '…'`, \
                     `version = …`, `retired` or `stored_as = \"…\"`",
                ));
            }
            Ok(())
        })?;
    }
    if let Some(copies) = copies.as_ref().filter(|_| !fenced) {
        return Err(syn::Error::new(
            copies.span(),
            "only a fence has copies: write `fenced, copies = …`",
        ));
    }
    let copies = copies.map_or(quote!(0), |copies| quote!(#copies));
    let name = input.ident;
    let Data::Struct(data) = input.data else {
        return Err(syn::Error::new(name.span(), "an event type is a struct"));
    };
    let tagged = Tagged::new(&input.attrs, data.fields, "an event type")?;
    check_partition(&name, &tagged)?;
    if read_as_composite && !tagged.tags().all(Tag::is_single) {
        return Err(syn::Error::new(
            name.span(),
            "a type read as a composite has exactly one value for each tag: no list, no option",
        ));
    }
    let upcasts = evolved.upcasts(&name)?;
    let write = match evolved.write()? {
        None => quote!(::std::option::Option::None),
        Some((number, downcast)) => quote! {
            ::std::option::Option::Some(::ringfence::__private::WrittenVersion { number: #number, downcast: #downcast })
        },
    };
    let retired = evolved.retired;
    let text = evolved.stored_as.clone().unwrap_or_else(|| name.to_string());
    let schemas = tagged.schemas();
    let subjects = tagged.subjects.value();
    let push = tagged.push_arm(&quote!(Self));
    let definition = wire_fields(&tagged.fields);
    let attributes = quote!(rename_all = "camelCase", expecting = "an object",);
    let wire = wire(&name, &attributes, &quote!(struct __Wire { #definition }));
    // Nothing writes a retired type.
    let writes = (!retired).then(|| {
        quote! {
            impl ::ringfence::__private::Writes for #name {
                const SCHEMAS: &'static [::ringfence::__private::EventSchema] =
                    &[<Self as ::ringfence::__private::Event>::SCHEMA];

                fn visit(visitor: &mut impl ::ringfence::__private::EventVisitor) {
                    visitor.event::<Self>();
                }

                fn to_event(
                    &self,
                ) -> ::std::result::Result<::ringfence::__private::NewEvent, ::ringfence::__private::EventError> {
                    ::ringfence::__private::NewEvent::new(self)
                }
            }
        }
    });
    Ok(quote! {
        impl ::ringfence::__private::Event for #name {
            const NAME: &'static str = #text;
            const SCHEMA: ::ringfence::__private::EventSchema = ::ringfence::__private::EventSchema {
                name: ::std::borrow::Cow::Borrowed(#text),
                tags: ::std::borrow::Cow::Borrowed({
                    const TAGS: &[::ringfence::__private::TagSchema] = #schemas;
                    TAGS
                }),
                separator: #separator,
                read_as_composite: #read_as_composite,
                read_by_type: #read_by_type,
                fenced: #fenced,
                copies: #copies,
                upcasts: <Self as ::ringfence::__private::Event>::UPCASTS,
                write: #write,
                retired: #retired,
                subjects: #subjects,
            };
            const UPCASTS: ::ringfence::__private::Upcasts = ::ringfence::__private::Upcasts(&[#(#upcasts),*]);

            fn tags(&self) -> ::std::vec::Vec<::ringfence::__private::Tag> {
                let mut __tags = ::std::vec::Vec::new();
                match self { #push }
                __tags
            }
        }

        #writes

        #wire
    })
}

/// A contradiction among the tags of one type is a compile error.
fn check_partition(name: &Ident, tagged: &Tagged) -> Result<()> {
    let mut tags = tagged.tags().peekable();
    if tags.peek().is_some() && !tags.any(Tag::is_partition) {
        return Err(syn::Error::new(
            name.span(),
            "an event with tags needs a partition: mark one of its tags `#[tag(partition)]`",
        ));
    }
    Ok(())
}

/// The first paragraph of a doc comment.
fn about(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(MetaNameValue {
            path,
            value: Expr::Lit(ExprLit { lit: Lit::Str(line), .. }),
            ..
        }) if path.is_ident("doc") => Some(line.value().trim().to_owned()),
        _ => None,
    };
    let lines = attributes.iter().filter_map(line).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

pub(crate) fn command(input: DeriveInput) -> Result<TokenStream> {
    let (name, about) = (input.ident, about(&input.attrs));
    // (the path of the struct or variant, its fields and tags)
    let (variants, wire) = match input.data {
        Data::Struct(data) => {
            let tagged = Tagged::new(&input.attrs, data.fields, "a command")?;
            let definition = wire_fields(&tagged.fields);
            let attributes =
                quote!(rename_all = "camelCase", deny_unknown_fields, expecting = "an object",);
            let wire = wire(&name, &attributes, &quote!(struct __Wire { #definition }));
            (vec![(quote!(Self), tagged)], wire)
        }
        Data::Enum(data) => {
            refuse_serde(&input.attrs)?;
            if let Some(tag) = tag_attributes(&input.attrs).next() {
                return Err(syn::Error::new_spanned(
                    tag,
                    "a tag is computed from the fields of a variant: write it on each variant that has it",
                ));
            }
            let variants =
                data.variants.into_iter().map(|Variant { ident, attrs, fields, .. }| {
                    Ok((ident, Tagged::new(&attrs, fields, "a variant of a command")?))
                });
            let variants = variants.collect::<Result<Vec<_>>>()?;
            let wire = wire_of_variants(&name, &variants);
            let path = |(ident, tagged)| (quote!(Self::#ident), tagged);
            (variants.into_iter().map(path).collect(), wire)
        }
        Data::Union(_) => {
            return Err(syn::Error::new(name.span(), "a command is a struct or an enum"));
        }
    };
    let shapes = variants.iter().map(|(_, tagged)| tagged.schemas());
    let shape_arms =
        variants.iter().enumerate().map(|(n, (path, _))| quote!(#path { .. } => Self::SHAPES[#n],));
    let subject_arms = variants.iter().map(|(path, tagged)| {
        let subjects = tagged.subjects.value();
        quote!(#path { .. } => #subjects,)
    });
    let tag_arms = variants.iter().map(|(path, tagged)| tagged.push_arm(path));
    Ok(quote! {
        impl ::ringfence::__private::Command for #name {
            const ABOUT: &'static str = #about;
            const SHAPES: &'static [&'static [::ringfence::__private::TagSchema]] = &[#(#shapes),*];

            fn shape(&self) -> &'static [::ringfence::__private::TagSchema] {
                match self { #(#shape_arms)* }
            }

            fn subjects(&self) -> ::ringfence::__private::Subjects {
                match self { #(#subject_arms)* }
            }

            fn tags(&self) -> ::std::vec::Vec<::ringfence::__private::Tag> {
                let mut __tags = ::std::vec::Vec::new();
                match self { #(#tag_arms)* }
                __tags
            }
        }

        #wire
    })
}

fn wire_fields(fields: &[TaggedField]) -> TokenStream {
    let fields =
        fields.iter().map(|TaggedField { ident, ty, serde, .. }| quote!(#(#serde)* #ident: #ty));
    quote!(#(#fields),*)
}

/// JSON through a mirror of the type, so that every event and command follows the conventions.
fn wire(name: &Ident, attributes: &TokenStream, definition: &TokenStream) -> TokenStream {
    let mirror = mirror(name, attributes, quote!(__serde::Deserialize), definition);
    let deserialize = deserialize(name, &quote!(__Wire::deserialize(deserializer)));
    quote! {
        const _: () = {
            use ::ringfence::__private::{schemars as __schemars, serde as __serde};
            #mirror
            #deserialize
        };
    }
}

/// As [`wire`], but reads variant by variant, because serde's own tagged enums do not report the wrong field.
fn wire_of_variants(name: &Ident, variants: &[(Ident, Tagged)]) -> TokenStream {
    let mirrors = variants.iter().map(|(ident, tagged)| {
        let fields = wire_fields(&tagged.fields);
        quote!(#ident { #fields })
    });
    let attributes = quote!(tag = "type", rename_all_fields = "camelCase", deny_unknown_fields,);
    let mirror = mirror(name, &attributes, quote!(), &quote!(enum __Wire { #(#mirrors),* }));
    let names: Vec<_> = variants.iter().map(|(ident, _)| ident.to_string()).collect();
    let arms = variants.iter().zip(&names).map(|((ident, tagged), text)| {
        let definition = wire_fields(&tagged.fields);
        let idents: Vec<_> = tagged.fields.iter().map(|field| &field.ident).collect();
        quote! {
            #text => {
                #[derive(__serde::Deserialize)]
                #[serde(
                    crate = "::ringfence::__private::serde",
                    rename = #text,
                    rename_all = "camelCase",
                    deny_unknown_fields,
                    expecting = "an object"
                )]
                struct __Wire { #definition }
                let __Wire { #(#idents),* } = ::ringfence::__private::from_fields(fields)?;
                Ok(Self::#ident { #(#idents),* })
            }
        }
    });
    let deserialize = deserialize(
        name,
        &quote! {
            let (variant, fields) = ::ringfence::__private::variant(deserializer)?;
            match variant.as_str() {
                #(#arms)*
                other => Err(::ringfence::__private::unknown_variant(other, &[#(#names),*])),
            }
        },
    );
    quote! {
        const _: () = {
            use ::ringfence::__private::{schemars as __schemars, serde as __serde};
            #mirror
            #deserialize
        };
    }
}

/// The mirror, with the written JSON and the declared shape.
fn mirror(
    name: &Ident,
    attributes: &TokenStream,
    also: TokenStream,
    definition: &TokenStream,
) -> TokenStream {
    let text = name.to_string();
    let declared = declared(name, &format_ident!("__Wire"));
    quote! {
        #[derive(__serde::Serialize, __schemars::JsonSchema, #also)]
        #[serde(
            crate = "::ringfence::__private::serde",
            remote = #text,
            rename = #text,
            #attributes
        )]
        #[schemars(crate = "::ringfence::__private::schemars")]
        #definition

        #declared

        impl __serde::Serialize for #name {
            fn serialize<S: __serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                __Wire::serialize(self, serializer)
            }
        }
    }
}

fn deserialize(name: &Ident, body: &TokenStream) -> TokenStream {
    quote! {
        impl<'de> __serde::Deserialize<'de> for #name {
            fn deserialize<D: __serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::std::result::Result<Self, D::Error> {
                #body
            }
        }
    }
}
