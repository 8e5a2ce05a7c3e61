//! The stack: its contexts, each with its line here.

use ringfence_stack::{MemberList, Members, Stack, Visitor};

/// The shop.
pub struct Shop;

impl Members for Shop {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<accounts::Accounts>()
            .context::<carts::Carts>()
            .context::<catalog::ProductCatalog>()
            .context::<courses::Courses>()
            .context::<customers::Customers>()
            .context::<inventory::Inventory>()
            .context::<invoices::Invoices>()
            .context::<ordering::Ordering>()
            .context::<payments::Payments>()
            .context::<pricing::Pricing>()
            .context::<signups::Signups>();
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
