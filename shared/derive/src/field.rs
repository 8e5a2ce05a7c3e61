//! The tags of events and commands: tags of fields, and tags that are computed from several fields.

use heck::ToLowerCamelCase;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Attribute, Expr, Field, Fields, Ident, LitStr, Result, Type, spanned::Spanned};

use crate::subjects::Subjects;
use crate::types::{is_personal, outer_type, serde_options};

/// The fields of a struct, or of a variant of a command, and its tags.
pub(crate) struct Tagged {
    pub(crate) fields: Vec<TaggedField>,
    /// The fields that name the subjects of personal data.
    pub(crate) subjects: Subjects,
    /// The computed tags, in the order of their attributes.
    computed: Vec<ComputedTag>,
}

/// A named field, and its tag if it has one.
pub(crate) struct TaggedField {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) serde: Vec<Attribute>,
    tag: Option<Tag>,
}

/// A tag whose value is an expression over the fields.
struct ComputedTag {
    tag: Tag,
    value: Expr,
}

pub(crate) struct Tag {
    key: String,
    partition: bool,
    cross_partition: bool,
    strong: bool,
    many: bool,
    required: bool,
    computed: bool,
    blind: bool,
}

impl Tagged {
    /// `attributes` belong to the struct or variant. `what` describes it in errors.
    pub(crate) fn new(attributes: &[Attribute], fields: Fields, what: &str) -> Result<Self> {
        refuse_serde(attributes)?;
        let fields: Vec<Field> = match fields {
            Fields::Named(fields) => fields.named.into_iter().collect(),
            Fields::Unit => Vec::new(),
            Fields::Unnamed(fields) => {
                return Err(syn::Error::new(fields.span(), format!("{what} has named fields")));
            }
        };
        let subjects = Subjects::of(&fields)?;
        let fields = all(fields.into_iter().map(TaggedField::parse))?;
        let computed = tag_attributes(attributes).map(ComputedTag::parse);
        Ok(Self { fields, subjects, computed: computed.collect::<Result<_>>()? })
    }

    /// The tags, in the order of the source.
    pub(crate) fn tags(&self) -> impl Iterator<Item = &Tag> {
        let computed = self.computed.iter().map(|computed| &computed.tag);
        computed.chain(self.fields.iter().filter_map(|field| field.tag.as_ref()))
    }

    pub(crate) fn schemas(&self) -> TokenStream {
        let schemas = self.tags().map(Tag::schema);
        quote!(&[#(#schemas),*])
    }

    /// The arm of a match on a reference to the struct or variant at `path`. It pushes the tags onto `__tags`.
    pub(crate) fn push_arm(&self, path: &TokenStream) -> TokenStream {
        let idents = self.fields.iter().map(|field| &field.ident);
        let computed = self
            .computed
            .iter()
            .map(|ComputedTag { tag, value }| tag.push(&quote!(&(#value)), value.span()));
        let of_fields = self.fields.iter().filter_map(|TaggedField { ident, ty, tag, .. }| {
            tag.as_ref().map(|tag| tag.push(&quote!(#ident), ty.span()))
        });
        // An expression names its fields; the compiler checks which ones.
        quote! {
            #[allow(unused_variables)]
            #path { #(#idents),* } => { #(#computed)* #(#of_fields)* }
        }
    }
}

/// All values, or all errors, so that one build shows them.
fn all<T>(results: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let (mut values, mut errors) = (Vec::new(), None::<syn::Error>);
    for result in results {
        match (result, &mut errors) {
            (Ok(value), _) => values.push(value),
            (Err(error), Some(all)) => all.combine(error),
            (Err(error), none) => *none = Some(error),
        }
    }
    errors.map_or(Ok(values), Err)
}

impl TaggedField {
    fn parse(field: Field) -> Result<Self> {
        check_option(&field)?;
        let ident = field.ident.clone().expect("named fields have names");
        let ident_span = ident.span();
        let name = ident.to_string();
        let many = outer_type(&field.ty).is_some_and(|ty| ty == "Vec" || ty == "List");
        let required = outer_type(&field.ty).is_none_or(|ty| ty != "Option");
        let by_name = name.ends_with("_id") || name.ends_with("_ids");
        let options = TagOptions::parse(tag_attributes(&field.attrs))?;
        if let Some(value) = options.value {
            return Err(syn::Error::new_spanned(
                value,
                "`value` is for a tag that is computed from several fields: write \
                 `#[tag(key = \"…\", value = …)]` on the struct or variant",
            ));
        }
        if let Some(optional) = options.optional {
            return Err(optional.error(
                "`optional` is for a tag that is computed: an `Option` field is a tag only if it has a value",
            ));
        }
        if let Some(skip) = options.skip {
            let error = "`skip` is for fields named `*_id` or `*_ids`; remove it here";
            return if by_name { Ok(Self::untagged(field, ident)) } else { Err(skip.error(error)) };
        }
        let blind = options.blind.is_some();
        let personal = is_personal(&field.ty);
        let has_tag = by_name || options.key.is_some();
        if personal && has_tag && !blind {
            return Err(syn::Error::new(
                ident_span,
                "tags are in keys, for ever and in clear, so a personal value has none, or a blind one: `#[tag(…, blind)]`",
            ));
        }
        if let Some(blind) = options.blind.as_ref().filter(|_| !personal) {
            return Err(blind.error(
                "a blind tag hides a personal value: give the field the type `Personal<…>`",
            ));
        }
        let scope = options.scope.as_ref().or(options.blind.as_ref());
        let tag = match (by_name, &options.key, scope) {
            (false, None, Some(scope)) => {
                return Err(scope.error(
                    "this field is not a tag: tags are fields named `*_id` or `*_ids`; name its key: \
                     `#[tag(key = \"…\", …)]`",
                ));
            }
            (false, None, None) => None,
            (_, key, _) => Some(Tag {
                key: key
                    .as_ref()
                    .map_or_else(|| singular(&name).to_lower_camel_case(), LitStr::value),
                partition: options.partition,
                cross_partition: options.cross_partition,
                strong: options.strong.is_some(),
                many,
                required: required && !many,
                computed: false,
                blind,
            }),
        };
        if let Some(tag) = &tag {
            tag.check(ident_span)?;
        }
        Ok(Self { tag, ..Self::untagged(field, ident) })
    }

    fn untagged(field: Field, ident: Ident) -> Self {
        let serde = field.attrs.into_iter().filter(|a| a.path().is_ident("serde")).collect();
        Self { ident, ty: field.ty, serde, tag: None }
    }
}

impl ComputedTag {
    fn parse(attribute: &Attribute) -> Result<Self> {
        let options = TagOptions::parse([attribute])?;
        let TagOptions { key, value, partition, cross_partition, strong, skip, optional, .. } =
            options;
        if let Some(blind) = options.blind {
            return Err(
                blind.error("`blind` is for the tag of one field of the type `Personal<…>`")
            );
        }
        if let Some(skip) = skip {
            return Err(skip.error("`skip` is for fields named `*_id` or `*_ids`; remove it here"));
        }
        let (Some(key), Some(value)) = (key, value) else {
            return Err(syn::Error::new_spanned(
                attribute,
                "a tag that is computed from the fields has a key and a value: \
                 `#[tag(key = \"…\", value = …)]`; the tag of one field is written on the field",
            ));
        };
        let tag = Tag {
            key: key.value(),
            partition,
            cross_partition,
            strong: strong.is_some(),
            many: false,
            required: optional.is_none(),
            computed: true,
            blind: false,
        };
        tag.check(attribute.span())?;
        Ok(Self { tag, value })
    }
}

/// Serde's attributes on a type or a variant would change the JSON that the derive determines. Attributes on fields
/// are kept.
pub(crate) fn refuse_serde(attributes: &[Attribute]) -> Result<()> {
    match attributes.iter().find(|attribute| attribute.path().is_ident("serde")) {
        None => Ok(()),
        Some(attribute) => Err(syn::Error::new_spanned(
            attribute,
            "a type and its variants have no `serde` attributes, their names are fixed: write `#[serde(…)]` on each \
             field that it is meant for",
        )),
    }
}

/// Refuses an option whose declared shape would be wrong: serde requires a field that a function reads.
pub(crate) fn check_option(field: &Field) -> Result<()> {
    let options = serde_options(&field.attrs)?;
    let has = |name: &str| options.iter().any(|option| option.path().is_ident(name));
    let is_option = outer_type(&field.ty).is_some_and(|ty| ty == "Option");
    if is_option && (has("with") || has("deserialize_with")) && !has("default") {
        let error = "serde requires this field, because a function reads it: add `default` to `#[serde(…)]`";
        return Err(syn::Error::new_spanned(field, error));
    }
    Ok(())
}

/// The `#[tag(…)]` among the attributes.
pub(crate) fn tag_attributes(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("tag"))
}

/// The options of `#[tag(…)]`. Their paths show the position of errors.
#[derive(Default)]
struct TagOptions {
    key: Option<LitStr>,
    value: Option<Expr>,
    partition: bool,
    cross_partition: bool,
    strong: Option<OptionPath>,
    scope: Option<OptionPath>,
    skip: Option<OptionPath>,
    optional: Option<OptionPath>,
    blind: Option<OptionPath>,
}

struct OptionPath(syn::Path);

impl OptionPath {
    fn error(&self, message: &str) -> syn::Error {
        syn::Error::new(self.0.span(), message)
    }
}

impl TagOptions {
    fn parse<'a>(attributes: impl IntoIterator<Item = &'a Attribute>) -> Result<Self> {
        let mut options = Self::default();
        for attribute in attributes {
            attribute.parse_nested_meta(|meta| {
                let path = || Some(OptionPath(meta.path.clone()));
                if meta.path.is_ident("skip") {
                    options.skip = path();
                } else if meta.path.is_ident("blind") {
                    options.blind = path();
                } else if meta.path.is_ident("optional") {
                    options.optional = path();
                } else if meta.path.is_ident("partition") {
                    (options.partition, options.scope) = (true, path());
                } else if meta.path.is_ident("cross_partition") {
                    (options.cross_partition, options.scope) = (true, path());
                } else if meta.path.is_ident("strong") {
                    options.strong = path();
                } else if meta.path.is_ident("key") {
                    let key = meta.value()?.parse()?;
                    check_key(&key)?;
                    options.key = Some(key);
                } else if meta.path.is_ident("value") {
                    options.value = Some(meta.value()?.parse()?);
                } else {
                    return Err(meta.error(
                        "expected `partition`, `cross_partition`, `strong`, `blind`, `skip`, `optional`, \
                         `key = \"…\"` or `value = …`",
                    ));
                }
                Ok(())
            })?;
        }
        match &options.strong {
            Some(strong) if !options.cross_partition => {
                Err(strong
                    .error("`strong` needs `cross_partition`: `#[tag(cross_partition, strong)]`"))
            }
            _ => Ok(options),
        }
    }
}

impl Tag {
    fn check(&self, span: Span) -> Result<()> {
        let error = |why| Err(syn::Error::new(span, why));
        match (self.partition, self.blind, self.required) {
            (true, true, _) => error(
                "the tag of a partition is in clear in its name, so it is not blind: mark an id `#[tag(partition)]`",
            ),
            (true, _, false) => {
                error("a partition tag has exactly one value: not a list and not an option")
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn is_partition(&self) -> bool {
        self.partition
    }

    /// Whether an event can be read by a whole set of tags that includes this one.
    pub(crate) fn is_single(&self) -> bool {
        self.required
    }

    fn schema(&self) -> TokenStream {
        let Self { key, partition, cross_partition, strong, many, required, computed, blind } =
            self;
        quote! {
            ::ringfence::__private::TagSchema {
                key: ::std::borrow::Cow::Borrowed(#key),
                partition: #partition,
                cross_partition: #cross_partition,
                strong: #strong,
                many: #many,
                required: #required,
                computed: #computed,
                blind: #blind,
            }
        }
    }

    /// Pushes the tags of `value`, an expression of type `&T`, onto `__tags`. A compile error about its type
    /// points at `at`.
    fn push(&self, value: &TokenStream, at: Span) -> TokenStream {
        let key = &self.key;
        let push = quote_spanned! { at =>
            __tags.push(::ringfence::__private::Tag::new(#key, ::ringfence::__private::TagValue::tag_value(__value)));
        };
        if self.blind {
            // A forgotten value has no tag.
            let values = match self.required {
                true => quote!((#value).known().into_iter()),
                false => {
                    quote!((#value).iter().filter_map(::ringfence::__private::Personal::known))
                }
            };
            quote! { for __value in #values { #push } }
        } else if self.required {
            quote! { { let __value = #value; #push } }
        } else {
            quote! { for __value in (#value).iter() { #push } }
        }
    }
}

fn check_key(key: &LitStr) -> Result<()> {
    let text = key.value();
    let valid = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric());
    if valid {
        return Ok(());
    }
    Err(syn::Error::new(key.span(), "a tag key matches [a-z][A-Za-z0-9]*"))
}

/// `product_id` of `product_ids`: both have the same key.
fn singular(field: &str) -> &str {
    if field.ends_with("_ids") { &field[..field.len() - 1] } else { field }
}
