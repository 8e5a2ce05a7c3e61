//! The walk over a stack.

use ringfence::{Aggregates, Context, Dcb, Event, LogOf, Slice};
use ringfence_document_log::{Document, Documents, OfDocument};
use ringfence_function::Service;
use ringfence_views::View;

/// Something with members: a stack has contexts, a context has slices, views and other functions.
pub trait Members {
    /// Lists them, in the order in which people are to read them.
    fn list(list: &mut MemberList<impl Visitor>);
}

/// A function of a context that is not a slice.
pub trait Function: Service {
    /// The path of the HTTP API at which it answers GET; `None` if it answers no request.
    const GET: Option<&'static str> = None;
}

/// Visits each member of a stack.
pub trait Visitor {
    /// A context on the DCB log. Its members follow.
    fn dcb_context<C: Context>(&mut self) {}
    /// A context on the aggregate log. Its members follow.
    fn aggregate_context<C: Context>(&mut self) {}
    /// A context on the document log. Its members follow.
    fn document_context<D: Document, C: Context<Log = Documents<D>>>(&mut self) {}
    /// A slice on the DCB log.
    fn dcb_slice<S: Slice<Context: Context<Log = Dcb>>>(&mut self) {}
    /// A slice on the aggregate log.
    fn aggregate_slice<S: Slice<Context: Context<Log = Aggregates>>>(&mut self) {}
    /// A slice on the document log.
    fn document_slice<S: OfDocument>(&mut self) {}
    /// A type of events that no slice of the context writes.
    fn event<E: Event>(&mut self) {}
    /// A context whose events slices of the context read.
    fn reads<C: Context>(&mut self) {}
    /// A view.
    fn view<V: View>(&mut self) {}
    /// A function that is not a slice.
    fn function<F: Function>(&mut self) {}
}

/// Where members are listed.
pub struct MemberList<'v, V>(&'v mut V);

impl<'v, V: Visitor> MemberList<'v, V> {
    /// Walks over the members of `M`.
    pub fn walk<M: Members>(visitor: &'v mut V) {
        M::list(&mut Self(visitor));
    }

    /// Lists a context and its members.
    pub fn context<C: Context<Log: ListedContext<C>> + Members>(&mut self) -> &mut Self {
        C::Log::visit(self.0);
        C::list(self);
        self
    }

    /// Lists a slice.
    pub fn slice<S: Slice<Context: Context<Log: ListedSlice<S>>>>(&mut self) -> &mut Self {
        LogOf::<S>::visit(self.0);
        self
    }

    /// Lists a type of events that no slice of the context writes, such as one that was written before.
    pub fn event<E: Event>(&mut self) -> &mut Self {
        self.0.event::<E>();
        self
    }

    /// Lists a context whose events slices of this context read.
    pub fn reads<C: Context>(&mut self) -> &mut Self {
        self.0.reads::<C>();
        self
    }

    /// Lists a view.
    pub fn view<W: View>(&mut self) -> &mut Self {
        self.0.view::<W>();
        self
    }

    /// Lists a function that is not a slice.
    pub fn function<F: Function>(&mut self) -> &mut Self {
        self.0.function::<F>();
        self
    }
}

/// A log, by its name, whose contexts can be listed.
pub trait ListedContext<C> {
    /// Visits the context.
    fn visit(visitor: &mut impl Visitor);
}

/// A log, by its name, whose slices can be listed.
pub trait ListedSlice<S> {
    /// Visits the slice.
    fn visit(visitor: &mut impl Visitor);
}

impl<C: Context> ListedContext<C> for Dcb {
    fn visit(visitor: &mut impl Visitor) {
        visitor.dcb_context::<C>();
    }
}

impl<C: Context> ListedContext<C> for Aggregates {
    fn visit(visitor: &mut impl Visitor) {
        visitor.aggregate_context::<C>();
    }
}

impl<D: Document, C: Context<Log = Self>> ListedContext<C> for Documents<D> {
    fn visit(visitor: &mut impl Visitor) {
        visitor.document_context::<D, C>();
    }
}

impl<S: Slice<Context: Context<Log = Dcb>>> ListedSlice<S> for Dcb {
    fn visit(visitor: &mut impl Visitor) {
        visitor.dcb_slice::<S>();
    }
}

impl<S: Slice<Context: Context<Log = Aggregates>>> ListedSlice<S> for Aggregates {
    fn visit(visitor: &mut impl Visitor) {
        visitor.aggregate_slice::<S>();
    }
}

impl<S: OfDocument> ListedSlice<S> for Documents<S::State> {
    fn visit(visitor: &mut impl Visitor) {
        visitor.document_slice::<S>();
    }
}
