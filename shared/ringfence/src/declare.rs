//! The declarations of contexts and stacks.

/// Declares a context: its name, its log, and its members in the order in which people read them.
///
/// A member is a `slice`, `due`, `view`, `reactor` or `function`, an `event` that no slice writes, or a context that
/// the slices read (`reads`). The declaration makes a type that implements [`Context`](crate::Context), and a test that
/// runs the cases of all slices in memory.
///
/// ```ignore
/// ringfence::context! {
///     pub Ordering, "ordering" on Dcb;
///     slice place_order::PlaceOrder;
///     view views::orders::Orders;
/// }
/// ```
#[macro_export]
macro_rules! context {
    (
        $(#[$meta:meta])* $visible:vis $context:ident, $name:literal on $log:ty;
        $($kind:ident $member:ty;)*
    ) => {
        $(#[$meta])*
        $visible struct $context;

        impl $crate::Context for $context {
            const NAME: &'static str = $name;
            type Log = $log;

            fn catalog() -> ::std::result::Result<$crate::Catalog, $crate::CatalogError> {
                $crate::stack::catalog::<Self>()
            }
        }

        $($crate::__is_member! { context $kind })*

        $crate::__members! { $context: $($kind $member;)* }

        $crate::__cases_of! { $name { $crate::stack::check_cases_in_memory::<$context>(); } }
    };
}

/// Declares a stack: its contexts, in the order in which people read them.
///
/// The declaration makes a type, and a function `stack` that returns the stack in plain values.
///
/// ```ignore
/// ringfence::stack! {
///     pub Shop;
///     context catalog::ProductCatalog;
///     context ordering::Ordering;
/// }
/// ```
#[macro_export]
macro_rules! stack {
    ($(#[$meta:meta])* $visible:vis $stack:ident; $($kind:ident $member:ty;)*) => {
        $(#[$meta])*
        $visible struct $stack;

        $($crate::__is_member! { stack $kind })*

        $crate::__members! { $stack: $($kind $member;)* }

        /// The stack in plain values.
        ///
        /// # Panics
        /// Two contexts contradict each other. The message names them.
        #[must_use]
        $visible fn stack() -> $crate::stack::Stack {
            $crate::stack::Stack::of::<$stack>().unwrap_or_else(|error| panic!("{error}"))
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __is_member {
    (stack context) => {};
    (stack $kind:ident) => {
        compile_error!(concat!(
            "a stack lists contexts, as `context ordering::Ordering;`: list this `",
            stringify!($kind),
            "` in the `context!` that it is of"
        ));
    };
    (context slice) => {};
    (context due) => {};
    (context view) => {};
    (context reactor) => {};
    (context function) => {};
    (context event) => {};
    (context reads) => {};
    (context $kind:ident) => {
        compile_error!(concat!(
            "a context lists `slice`, `due`, `view`, `reactor`, `function`, `event` and `reads`, and this is `",
            stringify!($kind),
            "`: a context is listed in `stack!`"
        ));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __members {
    ($of:ident: $($kind:ident $member:ty;)*) => {
        impl $crate::stack::Members for $of {
            fn list(list: &mut $crate::stack::MemberList<impl $crate::stack::Visitor>) {
                let _ = list;
                $(list.$kind::<$member>();)*
            }
        }
    };
}
