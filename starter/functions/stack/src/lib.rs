//! The stack: the list of its contexts.

ringfence::stack! {
    /// All contexts.
    pub Contexts;
    context shop::Shop;
}
