//! Event sourcing with dynamic consistency boundaries (DCB) on DynamoDB, as AWS Lambda functions.
//!
//! A **slice** is one use case: a command, the events that it reads, a fold and a decision. This one cancels an order:
//!
//! ```
//! use ringfence::prelude::*;
//! use serde::Serialize;
//!
//! ringfence::id_type!(OrderId, "names an order");
//!
//! /// An order is placed.
//! #[derive(Clone, Debug, PartialEq, Event)]
//! pub struct OrderPlaced {
//!     #[tag(partition)]
//!     pub order_id: OrderId,
//!     pub lines: u32,
//! }
//!
//! /// An order is cancelled.
//! #[derive(Clone, Debug, PartialEq, Event)]
//! pub struct OrderCancelled {
//!     #[tag(partition)]
//!     pub order_id: OrderId,
//! }
//!
//! /// Cancels an order.
//! #[derive(Clone, Debug, PartialEq, Command)]
//! pub struct CancelOrder {
//!     #[tag(partition)]
//!     pub order_id: OrderId,
//! }
//!
//! /// What the decision reads.
//! #[derive(Reads)]
//! pub enum Consumed {
//!     OrderPlaced,
//!     OrderCancelled,
//! }
//!
//! /// The status of the order.
//! #[derive(Default)]
//! pub enum Order {
//!     #[default]
//!     Unknown,
//!     Placed,
//!     Cancelled,
//! }
//!
//! /// Why an order is not cancelled.
//! #[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
//! #[serde(tag = "code", rename_all_fields = "camelCase")]
//! pub enum Rejection {
//!     #[error("order {order_id} does not exist")]
//!     OrderNotFound { order_id: OrderId },
//! }
//!
//! impl State for Order {
//!     type Reads = Consumed;
//!
//!     fn evolve(self, event: Consumed) -> Self {
//!         match event {
//!             Consumed::OrderPlaced => Order::Placed,
//!             Consumed::OrderCancelled => Order::Cancelled,
//!         }
//!     }
//! }
//!
//! impl Slice for CancelOrder {
//!     const NAME: &'static str = "cancel-order";
//!     type Context = Ordering;
//!     type State = Order;
//!     type Writes = OrderCancelled;
//!     type Rejection = Rejection;
//!
//!     fn decide(&self, state: &Order, _: &CommandContext) -> Result<Vec<OrderCancelled>, Rejection> {
//!         let order_id = self.order_id.clone();
//!         match state {
//!             Order::Unknown => Err(Rejection::OrderNotFound { order_id }),
//!             Order::Cancelled => Ok(vec![]),
//!             Order::Placed => Ok(vec![OrderCancelled { order_id }]),
//!         }
//!     }
//!
//!     fn cases() -> Vec<Case<Self>> {
//!         let cancel = || CancelOrder { order_id: id("o1") };
//!         let placed = || OrderPlaced { order_id: id("o1"), lines: 2 };
//!         let cancelled = || OrderCancelled { order_id: id("o1") };
//!         vec![
//!             given([]).when(cancel()).then_rejected(Rejection::OrderNotFound { order_id: id("o1") }),
//!             given(events![placed()]).when(cancel()).then([cancelled()]),
//!             given(events![placed(), cancelled()]).when(cancel()).then_nothing(),
//!         ]
//!     }
//! }
//!
//! ringfence::context! {
//!     pub Ordering, "ordering" on Dcb;
//!     event OrderPlaced;
//!     slice CancelOrder;
//! }
//!
//! // What the test of the context does. On DynamoDB the checks of the stack run the same cases.
//! ringfence::stack::check_cases_in_memory::<Ordering>();
//! ```
//!
//! Its function is `fn main() -> ExitCode { ringfence::run::<CancelOrder>() }`.
//!
//! Around slices a stack has these. Each module's page begins with an example:
//!
//! - a [`view`]: rows that queries read,
//! - a [`reactor`]: an effect outside of the stack, such as a mail,
//! - a [`Due`]: a command that is sent at a time,
//! - a [`function`] that is none of these, and a [`stack`](mod@stack): the list of the contexts.
//!
//! [`kit`] has the cases, [`log`] the logs without slices, [`feed`] the index of all events.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod declare;

pub use ringfence_core::{
    BoundaryId, Catalog, CatalogError, Catalogs, Cause, Command, CommandContext, Consistency,
    Context, Current, Due, DueRow, Envelope, Event, FieldError, Fields, Id, IdError, Lane, List,
    ListError, MailAddress, MailAddressError, Metadata, Never, NewEvent, Principal, PrincipalKind,
    Query, QueryItem, Reads, Rejection, SequencedEvent, Slice, Snapshots, State, Tag, TagSchema,
    TagValue, Text, TextError, TopicEvent, Upcast, Upcasts, Writes, events, id_type, kit, rfc3339,
};
pub use ringfence_dcb_log::Dcb;
pub use ringfence_lambda::slice::run;

#[doc(hidden)]
pub use ringfence_core::__private;

/// What the files of slices and contexts use.
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
    pub use ringfence_log::{Source, Sourced, Sources};
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
    //! What reactors do outside: mails and webhooks.
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
    //! The index: every event once, in the order of its partition.
    pub use ringfence_feed::*;
}

pub mod aws {
    //! Clients, the clock, and requests to services of AWS.
    pub use ringfence_aws::*;
}
