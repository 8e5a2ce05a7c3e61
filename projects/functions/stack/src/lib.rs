//! The stack: its contexts, each with its line here.

use ringfence_stack::{MemberList, Members, Stack, Visitor};

/// Projects that agents share.
pub struct SharedProjects;

impl Members for SharedProjects {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<projects::Projects>();
    }
}

/// The stack in plain values.
///
/// # Panics
/// Two contexts contradict each other, which the message names.
#[must_use]
pub fn stack() -> Stack {
    Stack::of::<SharedProjects>().unwrap_or_else(|error| panic!("{error}"))
}
