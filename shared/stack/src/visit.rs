//! The walk over a stack.

use ringfence_core::{Context, Due, Event, Slice};
use ringfence_lambda::Service;
use ringfence_log::{Log, Sourced};
use ringfence_reactors::Reactor;
use ringfence_views::View;

/// A type with members: a stack has contexts, and a context has slices, views, reactors and other functions.
pub trait Members {
    /// Lists them, in the order in which people read them.
    fn list(list: &mut MemberList<impl Visitor>);
}

/// A function of a context that is not a slice.
pub trait Function: Service<Of = ()> {
    /// The path of the HTTP API at which it answers GET; `None` if it answers no request.
    const GET: Option<&'static str> = None;
    /// The query parameters of such a request.
    const QUERY: &'static [&'static str] = &[];
}

/// Visits each member of a stack.
pub trait Visitor {
    /// A context. Its members follow.
    fn context<C: Context<Log: Sourced>>(&mut self) {}
    /// A slice.
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {}
    /// A type of events that no slice of the context writes.
    fn event<E: Event>(&mut self) {}
    /// Another context, whose events the slices read.
    fn reads<C: Context + Members>(&mut self) {}
    /// A due, whose slice is listed too.
    fn due<D: Due<Context: Context<Log: Log<D>>>>(&mut self) {}
    /// A view.
    fn view<V: View>(&mut self) {}
    /// A reactor.
    fn reactor<R: Reactor>(&mut self) {}
    /// A function that is not a slice.
    fn function<F: Function>(&mut self) {}
}

/// Takes the members of a list.
pub struct MemberList<'v, V>(&'v mut V);

impl<'v, V: Visitor> MemberList<'v, V> {
    /// Walks over the members of `M`.
    pub fn walk<M: Members>(visitor: &'v mut V) {
        M::list(&mut Self(visitor));
    }

    /// Lists a context and its members.
    pub fn context<C: Context<Log: Sourced> + Members>(&mut self) -> &mut Self {
        self.0.context::<C>();
        C::list(self);
        self
    }

    /// Lists a slice.
    pub fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) -> &mut Self {
        self.0.slice::<S>();
        self
    }

    /// Lists a type of events that no slice of the context writes, such as one that an older version wrote.
    pub fn event<E: Event>(&mut self) -> &mut Self {
        self.0.event::<E>();
        self
    }

    /// Lists another context, whose events the slices read.
    pub fn reads<C: Context + Members>(&mut self) -> &mut Self {
        self.0.reads::<C>();
        self
    }

    /// Lists a due, whose slice is listed as well.
    pub fn due<D: Due<Context: Context<Log: Log<D>>>>(&mut self) -> &mut Self {
        self.0.due::<D>();
        self
    }

    /// Lists a view.
    pub fn view<W: View>(&mut self) -> &mut Self {
        self.0.view::<W>();
        self
    }

    /// Lists a reactor.
    pub fn reactor<R: Reactor>(&mut self) -> &mut Self {
        self.0.reactor::<R>();
        self
    }

    /// Lists a function that is not a slice.
    pub fn function<F: Function>(&mut self) -> &mut Self {
        self.0.function::<F>();
        self
    }
}
