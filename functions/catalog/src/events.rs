//! The events and the value types.

use ringfence::{Event, Text, id_type};

id_type!(ProductId, "names a product");
id_type!(OrderId, "names an order of the ordering context");

/// The name of a product, as a command gives it.
pub type ProductName = Text<200>;
/// The description of a product, as a command gives it.
pub type Description = Text<4_000>;

/// An amount of money, in the smallest unit of its currency.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Money {
    /// Cents for EUR and USD, yen for JPY; a price is never negative.
    pub amount: u64,
    /// ISO 4217 code.
    pub currency: Currency,
}

impl Money {
    /// `amount` of the smallest unit of `currency`, for cases and tests; a command's currency is parsed.
    ///
    /// # Panics
    /// `currency` is not three capital letters.
    pub fn new(amount: u64, currency: &str) -> Self {
        let currency = Currency::try_from(currency.to_owned());
        Self { amount, currency: currency.unwrap_or_else(|error| panic!("{error}")) }
    }
}

/// ISO 4217 alphabetic code: three capital letters.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(try_from = "String")]
#[schemars(extend("pattern" = "^[A-Z]{3}$"))]
pub struct Currency(String);

/// The string is not a currency code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a currency is three capital letters (ISO 4217), such as EUR")]
pub struct CurrencyError;

impl TryFrom<String> for Currency {
    type Error = CurrencyError;

    fn try_from(code: String) -> Result<Self, CurrencyError> {
        let valid = code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase());
        if valid { Ok(Self(code)) } else { Err(CurrencyError) }
    }
}

/// A product is added to the catalog.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ProductAdded {
    #[tag(partition)]
    pub product_id: ProductId,
    pub name: String,
    pub description: String,
    pub price: Money,
}

/// The name of a product is changed.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ProductNameChanged {
    #[tag(partition)]
    pub product_id: ProductId,
    pub name: String,
}

/// The price of a product is changed.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ProductPriceChanged {
    #[tag(partition)]
    pub product_id: ProductId,
    pub price: Money,
}

/// An order asks for the product.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_as_composite)]
pub struct ProductDemandRecorded {
    #[tag(partition)]
    pub product_id: ProductId,
    pub order_id: OrderId,
}

/// An order no longer asks for the product.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_as_composite)]
pub struct ProductDemandRevoked {
    #[tag(partition)]
    pub product_id: ProductId,
    pub order_id: OrderId,
}
