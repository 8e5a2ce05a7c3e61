//! The stack: the list of its contexts.

ringfence::stack! {
    /// All contexts.
    pub Shop;
    context shop::Shop;
}
