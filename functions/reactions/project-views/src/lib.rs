//! project-views: the views of this stack, one file each.
//!
//! The index's stream is a doorbell: whatever it brings, each view reads the index from its own
//! checkpoint. A view that fails stops no other; the invocation then fails as a whole, so that the
//! doorbell rings again.

mod catalog_products;
mod course_rosters;
mod customer_order_counts;
mod customers;
mod orders;
mod product_demand;
mod round;

use ringfence_views::Definition;

pub use catalog_products::CatalogProducts;
pub use course_rosters::CourseRosters;
pub use customer_order_counts::CustomerOrderCounts;
pub use customers::Customers;
pub use orders::Orders;
pub use product_demand::ProductDemand;
pub use round::{Round, run};

/// Every view.
#[must_use]
pub fn views() -> Vec<Definition> {
    vec![
        Definition::of::<CatalogProducts>(),
        Definition::of::<ProductDemand>(),
        Definition::of::<Orders>(),
        Definition::of::<CustomerOrderCounts>(),
        Definition::of::<CourseRosters>(),
        Definition::of::<Customers>(),
    ]
}

#[test]
fn views_have_names_of_their_own_and_read_types_that_exist() {
    let catalog = ringfence_stack::catalog().expect("free of contradictions");
    let mut names = std::collections::BTreeSet::new();
    for view in views() {
        assert!(names.insert(view.name), "{}", view.name);
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(view.name.chars().all(kebab), "{}", view.name);
        for name in view.types.iter().filter(|_| view.streams.is_empty()) {
            assert!(catalog.schema(name).is_some(), "{} reads {name}", view.name);
        }
    }
}
