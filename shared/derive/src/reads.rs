//! `Reads` and `Writes`: enums of event types.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Field, Fields, Ident, LitStr, Result, Variant, spanned::Spanned};

use crate::field::refuse_serde;
use crate::types::is_personal;

fn variants(data: Data, name: &Ident, what: &str) -> Result<Vec<Variant>> {
    match data {
        Data::Enum(data) => Ok(data.variants.into_iter().collect()),
        _ => Err(syn::Error::new(name.span(), format!("{what} is an enum of event types"))),
    }
}

pub(crate) fn reads(input: DeriveInput) -> Result<TokenStream> {
    let name = input.ident;
    refuse_serde(&input.attrs)?;
    let variants = variants(input.data, &name, "what a slice reads")?;
    let read = variants.iter().map(types).collect::<Result<Vec<_>>>()?;
    let names = read.iter().flatten();
    let is_open = |variant: &&Variant| variant.fields.iter().any(has_personal);
    let open = variants.iter().zip(&read).filter(|(variant, _)| is_open(variant));
    let open = open.flat_map(|(_, types)| types);
    let arms = variants.iter().zip(&read).map(|(variant, types)| decode_arm(variant, types));
    let arms = arms.collect::<Result<Vec<_>>>()?;
    Ok(quote! {
        impl ::ringfence::__private::Reads for #name {
            const TYPES: &'static [&'static str] = &[#(#names),*];
            const PERSONAL: &'static [&'static str] = &[#(#open),*];

            fn decode(
                event: &::ringfence::__private::Current<'_>,
            ) -> ::std::result::Result<Self, ::ringfence::__private::serde_json::Error> {
                use ::ringfence::__private::serde;
                match event.event_type.as_str() {
                    #(#arms)*
                    other => Err(serde::de::Error::unknown_variant(other, Self::TYPES)),
                }
            }
        }
    })
}

/// The event types that a variant reads: the type with its name, and the types in `also`.
fn types(variant: &Variant) -> Result<Vec<String>> {
    let mut types = vec![variant.ident.to_string()];
    for attribute in variant.attrs.iter().filter(|attribute| attribute.path().is_ident("reads")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("also") {
                return Err(meta.error("expected `also = \"…\"`, the name of a type"));
            }
            types.push(meta.value()?.parse::<LitStr>()?.value());
            Ok(())
        })?;
    }
    Ok(types)
}

fn decode_arm(variant: &Variant, types: &[String]) -> Result<TokenStream> {
    refuse_serde(&variant.attrs)?;
    let ident = &variant.ident;
    let name = ident.to_string();
    let fields = match &variant.fields {
        Fields::Unit => return Ok(quote!(#(#types)|* => Ok(Self::#ident),)),
        Fields::Named(fields) => &fields.named,
        Fields::Unnamed(fields) => {
            return Err(syn::Error::new(
                fields.span(),
                "name the fields that the fold needs: `OrderPlaced { order_id: OrderId }`",
            ));
        }
    };
    let (of_event, fields): (Vec<_>, Vec<_>) =
        fields.iter().map(|field| (field, of_event(field))).partition(|(_, of)| of.is_some());
    let of_event = of_event.into_iter().map(|(field, value)| (&field.ident, value));
    let (taken, values): (Vec<_>, Vec<_>) = of_event.unzip();
    let definitions = fields.iter().map(|(field, _)| {
        let (ident, ty) = (&field.ident, &field.ty);
        let serde = field.attrs.iter().filter(|attribute| attribute.path().is_ident("serde"));
        quote!(#(#serde)* #ident: #ty)
    });
    let idents: Vec<_> = fields.iter().map(|(field, _)| &field.ident).collect();
    let decoded = quote! {
        Ok(Self::#ident {
            #(#idents,)*
            #(#taken: #values,)*
        })
    };
    // An event of a stream may have no payload at all.
    if idents.is_empty() {
        return Ok(quote!(#(#types)|* => #decoded,));
    }
    Ok(quote! {
        #(#types)|* => {
            #[derive(serde::Deserialize)]
            #[serde(
                crate = "::ringfence::__private::serde",
                rename = #name,
                rename_all = "camelCase",
                expecting = "an object"
            )]
            struct __Wire { #(#definitions),* }
            let __Wire { #(#idents),* } = serde::Deserialize::deserialize(&event.data)?;
            #decoded
        }
    })
}

/// Whether a field has personal values: by its type, or because it says so.
fn has_personal(field: &Field) -> bool {
    is_personal(&field.ty) || field.attrs.iter().any(|it| it.path().is_ident("personal"))
}

/// The part of the event itself, not of its payload, that a field takes.
fn of_event(field: &Field) -> Option<TokenStream> {
    let marked = |name: &str| field.attrs.iter().any(|attribute| attribute.path().is_ident(name));
    let values = [
        ("id", quote!(event.id())),
        ("time", quote!(::ringfence::__private::ms(event)?)),
        ("stream", quote!(::ringfence::__private::stream(event)?)),
    ];
    values.into_iter().find(|(name, _)| marked(name)).map(|(_, value)| value)
}

pub(crate) fn writes(input: DeriveInput) -> Result<TokenStream> {
    let name = input.ident;
    let variants = variants(input.data, &name, "what a slice writes")?;
    let mut arms = Vec::new();
    let (mut schemas, mut visits) = (Vec::new(), Vec::new());
    for variant in &variants {
        let ident = &variant.ident;
        let Fields::Unnamed(fields) = &variant.fields else {
            return Err(syn::Error::new(
                ident.span(),
                "a variant holds one event: `Placed(OrderPlaced)`",
            ));
        };
        if fields.unnamed.len() != 1 {
            return Err(syn::Error::new(fields.span(), "a variant holds exactly one event"));
        }
        let ty = &fields.unnamed[0].ty;
        schemas.push(quote!(<#ty as ::ringfence::__private::Event>::SCHEMA));
        visits.push(quote!(visitor.event::<#ty>();));
        arms.push(quote!(Self::#ident(event) => ::ringfence::__private::Writes::to_event(event),));
    }
    Ok(quote! {
        impl ::ringfence::__private::Writes for #name {
            const SCHEMAS: &'static [::ringfence::__private::EventSchema] = &[#(#schemas),*];

            fn visit(visitor: &mut impl ::ringfence::__private::EventVisitor) {
                #(#visits)*
            }

            fn to_event(
                &self,
            ) -> ::std::result::Result<::ringfence::__private::NewEvent, ::ringfence::__private::EventError> {
                match self { #(#arms)* }
            }
        }
    })
}
