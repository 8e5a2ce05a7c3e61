//! The stack: its contexts, each with its line here.

use ringfence_stack::{MemberList, Members, Stack, Visitor};

/// All contexts.
pub struct Shop;

impl Members for Shop {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<shop::Shop>();
    }
}

/// The stack in plain values.
///
/// # Panics
/// Two contexts contradict each other, which the message names.
#[must_use]
pub fn stack() -> Stack {
    Stack::of::<Shop>().unwrap_or_else(|error| panic!("{error}"))
}
