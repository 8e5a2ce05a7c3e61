//! The names of types, and serde's options. Derive macros see names, not types.

use syn::{
    Attribute, GenericArgument, Ident, Meta, PathArguments, Result, Token, Type,
    punctuated::Punctuated,
};

/// `Vec` of `std::vec::Vec<T>`, `Option` of `Option<T>`. Derive macros see names, not types.
pub(crate) fn outer_type(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

/// Whether the type is `Personal<…>`, or an option or list of it.
pub(crate) fn is_personal(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    if last.ident == "Personal" {
        return true;
    }
    let PathArguments::AngleBracketed(inner) = &last.arguments else { return false };
    inner.args.iter().any(|it| matches!(it, GenericArgument::Type(ty) if is_personal(ty)))
}

/// What the `#[serde(…)]` among the attributes say.
pub(crate) fn serde_options(attributes: &[Attribute]) -> Result<Vec<Meta>> {
    let mut options = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        options.extend(attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?);
    }
    Ok(options)
}
