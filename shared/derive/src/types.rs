//! The names of types. Derive macros see names, not types.

use syn::{GenericArgument, Ident, PathArguments, Type};

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
