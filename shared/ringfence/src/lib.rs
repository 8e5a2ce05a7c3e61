//! Event sourcing with dynamic consistency boundaries (DCB) on DynamoDB, as AWS Lambda functions.
//!
//! A **slice** is one use case: a command, the events that its decision reads, a state that folds them, and the
//! decision. Here each order is stored in its own partition, and the limit counts all orders of a customer:
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use ringfence::prelude::*;
//! use serde::Serialize;
//!
//! ringfence::id_type!(OrderId, "names an order");
//! ringfence::id_type!(CustomerId, "names a customer");
//! ringfence::id_type!(ProductId, "names a product");
//!
//! /// A customer orders some units of one product.
//! #[derive(Clone, Debug, PartialEq, Event)]
//! pub struct ProductOrdered {
//!     #[tag(partition)]
//!     pub order_id: OrderId,
//!     #[tag(cross_partition)]
//!     pub customer_id: CustomerId,
//!     #[tag(skip)]
//!     pub product_id: ProductId,
//!     pub quantity: u32,
//! }
//!
//! /// How many units of one product a customer may order over all orders.
//! pub const UNITS_MAX: u64 = 10;
//!
//! /// Orders units of a product.
//! #[derive(Clone, Debug, PartialEq, Command)]
//! pub struct OrderProduct {
//!     #[tag(partition)]
//!     pub order_id: OrderId,
//!     #[tag(cross_partition)]
//!     pub customer_id: CustomerId,
//!     /// Payload only: the fold selects the product among the customer's orders.
//!     #[tag(skip)]
//!     pub product_id: ProductId,
//!     pub quantity: u32,
//! }
//!
//! /// What the decision reads.
//! #[derive(Reads)]
//! pub enum Consumed {
//!     ProductOrdered { order_id: OrderId, product_id: ProductId, quantity: u32 },
//! }
//!
//! /// The customer's orders, and the order with this id, even if another customer placed it.
//! #[derive(Default)]
//! pub struct Orders {
//!     ordered: BTreeMap<OrderId, (ProductId, u32)>,
//! }
//!
//! /// Why units are not ordered.
//! #[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
//! #[serde(tag = "code", rename_all_fields = "camelCase")]
//! pub enum Rejection {
//!     #[error("order {order_id} is already placed")]
//!     OrderAlreadyPlaced { order_id: OrderId },
//!     #[error("the caller is not the customer {customer_id}")]
//!     NotTheCustomer { customer_id: CustomerId },
//!     #[error("quantity is 0; order at least 1")]
//!     InvalidQuantity,
//!     #[error("product {product_id}: at most {limit} a customer, {ordered} already ordered")]
//!     LimitExceeded { product_id: ProductId, ordered: u64, limit: u64 },
//! }
//!
//! impl State for Orders {
//!     type Reads = Consumed;
//!
//!     fn evolve(mut self, event: Consumed) -> Self {
//!         let Consumed::ProductOrdered { order_id, product_id, quantity } = event;
//!         self.ordered.insert(order_id, (product_id, quantity));
//!         self
//!     }
//! }
//!
//! impl Slice for OrderProduct {
//!     const NAME: &'static str = "order-product";
//!     const SCOPES: &'static [&'static str] = &["ordering/write"];
//!     type Context = Ordering;
//!     type State = Orders;
//!     type Writes = ProductOrdered;
//!     type Rejection = Rejection;
//!
//!     fn decide(
//!         &self,
//!         state: &Orders,
//!         context: &CommandContext,
//!     ) -> Result<Vec<ProductOrdered>, Rejection> {
//!         let Self { order_id, customer_id, product_id, quantity } = self.clone();
//!         if context.is_other_person(&customer_id) {
//!             return Err(Rejection::NotTheCustomer { customer_id });
//!         }
//!         if state.ordered.contains_key(&order_id) {
//!             return Err(Rejection::OrderAlreadyPlaced { order_id });
//!         }
//!         if quantity == 0 {
//!             return Err(Rejection::InvalidQuantity);
//!         }
//!         let same = state.ordered.values().filter(|(product, _)| *product == product_id);
//!         let ordered = same.map(|(_, quantity)| u64::from(*quantity)).sum();
//!         if ordered + u64::from(quantity) > UNITS_MAX {
//!             return Err(Rejection::LimitExceeded { product_id, ordered, limit: UNITS_MAX });
//!         }
//!         Ok(vec![ProductOrdered { order_id, customer_id, product_id, quantity }])
//!     }
//!
//!     fn cases() -> Vec<Case<Self>> {
//!         let ordered = |order, quantity| ProductOrdered {
//!             order_id: id(order),
//!             customer_id: id("c1"),
//!             product_id: id("p1"),
//!             quantity,
//!         };
//!         let order = |order, quantity| OrderProduct {
//!             order_id: id(order),
//!             customer_id: id("c1"),
//!             product_id: id("p1"),
//!             quantity,
//!         };
//!         let exceeded = Rejection::LimitExceeded { product_id: id("p1"), ordered: 9, limit: UNITS_MAX };
//!         let nine = || events![ordered("o1", 6), ordered("o2", 3)];
//!         vec![
//!             case("the tenth unit in three orders")
//!                 .given(nine())
//!                 .when(order("o3", 1))
//!                 .then([ordered("o3", 1)]),
//!             case("the eleventh unit in three orders")
//!                 .given(nine())
//!                 .when(order("o3", 2))
//!                 .then_rejected(exceeded),
//!             given(nine()).when(order("o2", 1)).then_rejected(Rejection::OrderAlreadyPlaced { order_id: id("o2") }),
//!         ]
//!     }
//! }
//!
//! ringfence::context! {
//!     pub Ordering, "ordering" on Dcb;
//!     slice OrderProduct;
//! }
//!
//! // The test that `context!` writes. The checks of a stack run the same cases on DynamoDB.
//! ringfence::stack::check_cases_in_memory::<Ordering>();
//! ```
//!
//! The slice as a Lambda function: `fn main() -> ExitCode { ringfence::run::<OrderProduct>() }`.
//!
//! # A view
//!
//! A view folds events into rows, which are served over HTTP: [`view`].
//!
//! ```
//! # use ringfence::prelude::*;
//! # ringfence::id_type!(OrderId, "names an order");
//! # #[derive(Clone, Debug, PartialEq, Event)] pub struct OrderPlaced { #[tag(partition)] pub order_id: OrderId, pub lines: u32 }
//! use ringfence::view::{View, kit::given};
//!
//! pub struct Orders;
//!
//! #[derive(Reads)]
//! pub enum Consumed {
//!     OrderPlaced { order_id: OrderId, lines: u32 },
//! }
//!
//! #[ringfence::value]
//! #[derive(Debug)]
//! pub struct Row {
//!     lines: u32,
//! }
//!
//! impl View for Orders {
//!     const NAME: &'static str = "orders";
//!     type Reads = Consumed;
//!     type Row = Row;
//!
//!     fn rows(Consumed::OrderPlaced { order_id, .. }: &Consumed) -> Vec<String> {
//!         vec![order_id.to_string()]
//!     }
//!
//!     fn evolve(_: Option<Row>, _: &str, event: &Consumed) -> Option<Row> {
//!         let Consumed::OrderPlaced { lines, .. } = event;
//!         Some(Row { lines: *lines })
//!     }
//! }
//!
//! given(events![OrderPlaced { order_id: id("o1"), lines: 2 }])
//!     .then::<Orders>([("o1", Row { lines: 2 })]);
//! ```
//!
//! # A reactor
//!
//! A reactor has an effect outside of the stack, such as a mail: [`reactor`]. [`effect`] has mails and webhooks.
//!
//! ```
//! # use ringfence::prelude::*;
//! # ringfence::id_type!(OrderId, "names an order");
//! # #[derive(Clone, Debug, PartialEq, Event)] pub struct OrderPlaced { #[tag(partition)] pub order_id: OrderId, pub lines: u32 }
//! # #[derive(Reads)]
//! # pub enum Consumed { OrderPlaced { order_id: OrderId } }
//! # ringfence::context! { pub Ordering, "ordering" on Dcb; event OrderPlaced; }
//! # use std::error::Error;
//! use ringfence::function::Variables;
//! use ringfence::reactor::{Delivery, Failed, InDoubt, Reactor, Starts};
//!
//! pub struct PrintLabel;
//!
//! impl Reactor for PrintLabel {
//!     const NAME: &'static str = "print-label";
//!     const STARTS: Starts = Starts::Now;
//!     const IN_DOUBT: InDoubt = InDoubt::Repeat; // two labels are better than none
//!     type Context = Ordering;
//!     type Reads = Consumed;
//!     type Effect = String;
//!     type Config = ();
//!
//!     fn config(_: &mut Variables) {}
//!
//!     async fn open((): ()) -> Result<Self, Box<dyn Error + Send + Sync>> {
//!         Ok(Self)
//!     }
//!
//!     fn plan(Consumed::OrderPlaced { order_id }: &Consumed) -> Vec<String> {
//!         vec![order_id.to_string()]
//!     }
//!
//!     async fn run(&self, label: &String, _: &Delivery<'_>) -> Result<(), Failed> {
//!         println!("{label}");
//!         Ok(())
//!     }
//! }
//! ```
//!
//! # A due
//!
//! A [`Due`] says when the command of its slice is sent. Like a view, it folds events into rows. Here each row is the
//! time until which a room is held:
//!
//! ```
//! # use std::error::Error;
//! # use ringfence::prelude::*;
//! # ringfence::id_type!(RoomId, "names a room");
//! # const HELD_MS: u64 = 15 * 60 * 1_000;
//! # #[derive(Clone, Debug, PartialEq, Event)]
//! # pub struct RoomHeld { #[tag(partition)] pub room_id: RoomId }
//! # #[derive(Clone, Debug, PartialEq, Event)]
//! # pub struct RoomFreed { #[tag(partition)] pub room_id: RoomId }
//! # #[derive(Clone, Debug, PartialEq, Command)]
//! # pub struct FreeRoom { #[tag(partition)] pub room_id: RoomId }
//! # #[derive(Reads)]
//! # pub enum Consumed { RoomHeld { room_id: RoomId, #[time] at_ms: u64 }, RoomFreed { room_id: RoomId } }
//! # #[derive(Default)] pub struct Room { until_ms: Option<u64> }
//! # impl State for Room {
//! #     type Reads = Consumed;
//! #     fn evolve(self, event: Consumed) -> Self { Self { until_ms: FreeRoom::evolve(None, "", &event) } }
//! # }
//! # impl Slice for FreeRoom {
//! #     const NAME: &'static str = "free-room";
//! #     type Context = Hotel;
//! #     type State = Room; type Writes = RoomFreed;
//! #     type Rejection = Never;
//! #     fn decide(&self, room: &Room, context: &CommandContext) -> Result<Vec<RoomFreed>, Never> {
//! #         let is_over = room.until_ms.is_some_and(|until_ms| until_ms <= context.now_ms);
//! #         Ok(is_over.then(|| RoomFreed { room_id: self.room_id.clone() }).into_iter().collect())
//! #     }
//! #     fn cases() -> Vec<Case<Self>> {
//! #         let held = given(events![RoomHeld { room_id: id("r1") }]).wait(HELD_MS);
//! #         vec![held.when(FreeRoom { room_id: id("r1") }).then([RoomFreed { room_id: id("r1") }])]
//! #     }
//! # }
//! impl Due for FreeRoom {
//!     type Reads = Consumed;
//!     type Row = u64;
//!
//!     fn rows(event: &Consumed) -> Vec<String> {
//!         let (Consumed::RoomHeld { room_id, .. } | Consumed::RoomFreed { room_id }) = event;
//!         vec![room_id.to_string()]
//!     }
//!
//!     fn evolve(_: Option<u64>, _: &str, event: &Consumed) -> Option<u64> {
//!         match event {
//!             Consumed::RoomHeld { at_ms, .. } => Some(at_ms + HELD_MS),
//!             Consumed::RoomFreed { .. } => None,
//!         }
//!     }
//!
//!     fn due_ms(until_ms: &u64) -> Option<u64> {
//!         Some(*until_ms)
//!     }
//!
//!     fn command(id: &str, _: &u64) -> Result<Self, Box<dyn Error + Send + Sync>> {
//!         Ok(Self { room_id: id.parse()? })
//!     }
//!
//!     fn due_cases() -> Vec<DueCase<Self>> {
//!         let held = || events![RoomHeld { room_id: id("r1") }];
//!         vec![
//!             given(held()).wait(HELD_MS - 1).then_none_due(),
//!             given(held()).wait(HELD_MS).then_due([FreeRoom { room_id: id("r1") }]),
//!         ]
//!     }
//! }
//!
//! ringfence::context! {
//!     pub Hotel, "hotel" on Dcb;
//!     event RoomHeld;
//!     slice FreeRoom;
//!     due FreeRoom;
//! }
//! # ringfence::stack::check_cases_in_memory::<Hotel>();
//! ```
//!
//! # A stack
//!
//! A [`stack`](mod@stack) lists contexts:
//!
//! ```ignore
//! ringfence::stack! {
//!     pub Shop;
//!     context catalog::ProductCatalog;
//!     context ordering::Ordering;
//! }
//! ```
//!
//! [`kit`] runs the cases, [`log`] has the logs without slices, [`feed`] the index of all events, and [`function`] what
//! other functions need.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod declare;

pub use ringfence_core::{
    BoundaryId, Callers, Catalog, CatalogError, Catalogs, Cause, Command, CommandContext,
    Consistency, Context, Current, Due, DueRow, Envelope, Event, FieldError, Fields, Id, IdError,
    Lane, List, ListError, MailAddress, MailAddressError, Metadata, Never, NewEvent, Personal,
    Principal, PrincipalKind, Query, QueryItem, Reads, Rejection, Sealed, SequencedEvent, Slice,
    Snapshots, State, Tag, TagSchema, TagValue, Text, TextError, TopicEvent, Upcast, Upcasts,
    Writes, events, id_type, kit, rfc3339, value,
};
pub use ringfence_dcb_log::Dcb;
pub use ringfence_lambda::slice::run;

#[doc(hidden)]
pub use ringfence_core::__private;
#[doc(hidden)]
pub use ringfence_derive::cases_of as __cases_of;

/// Names for the files of slices and contexts.
pub mod prelude {
    pub use ringfence_core::prelude::*;
    pub use ringfence_dcb_log::Dcb;
}

/// Logs without slices.
pub mod log {
    pub use ringfence_core::{
        Access, Append, Appended, Change, Conflict, EventLog, EventRef, EventSchema, HandleError,
        Handled, LimitExceeded, LimitKind, LogError, LogKind, MemoryLog, OnEvents, OnLog, Outcome,
        Plan, Seen, handle,
    };
    pub use ringfence_dcb_log::SOURCE;
    pub use ringfence_log::{Source, Sourced, Sources, StackLogs};
}

pub mod view {
    //! Read models: rows that are folded from the index, and served over HTTP.
    pub use ringfence_views::*;
}

pub mod reactor {
    //! Effects outside of the stack, one for each event of a lane.
    pub use ringfence_reactors::*;
}

pub mod effect {
    //! Effects for reactors: mails and webhooks.
    pub use ringfence_effects::*;
}

pub mod function {
    //! Functions that are neither slices nor reactors.
    pub use ringfence_lambda::*;
}

pub mod stack {
    //! The lists of a stack and its contexts.
    pub use ringfence_stack::*;
}

pub mod feed {
    //! The index: every event of the stack once, and the events of each partition in order.
    pub use ringfence_feed::*;
}

pub mod aws {
    //! Clients, the clock, and requests to services of AWS.
    pub use ringfence_aws::*;
}
