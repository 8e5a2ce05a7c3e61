//! The stack: its contexts, each with its line here.

ringfence::stack! {
    /// All contexts.
    pub Shop;
    context shop::Shop;
}
