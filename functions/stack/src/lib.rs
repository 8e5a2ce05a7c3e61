//! The stack: the list of its contexts.

ringfence::stack! {
    /// The shop.
    pub Shop;
    context accounts::Accounts;
    context carts::Carts;
    context catalog::ProductCatalog;
    context courses::Courses;
    context customers::Customers;
    context inventory::Inventory;
    context invoices::Invoices;
    context ordering::Ordering;
    context payments::Payments;
    context ringfence_services::personal_data::PersonalData;
    context pricing::Pricing;
    context signups::Signups;
}
