//! A stack in plain values.

use std::collections::BTreeSet;

use ringfence::{
    Aggregates, Catalog, CatalogError, Cause, Context, Dcb, Name, Reads, ReadsOf, Slice, State,
    Writes,
};
use ringfence_document_log::{Document, Documents, OfDocument};
use ringfence_views::{Definition, View};

use crate::{Function, MemberList, Members, Visitor};

/// One of the three logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Log {
    /// Events with tags, in one table.
    Dcb,
    /// One stream of events an aggregate.
    Aggregate,
    /// One document a stream.
    Document,
}

/// What a stack has, without the code of its slices.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Every event type of the DCB log.
    pub catalog: Catalog,
    /// The contexts, in the order of the list.
    pub contexts: Vec<ContextInfo>,
}

/// A context.
#[derive(Clone, Debug)]
pub struct ContextInfo {
    /// Its name, which is the source of its events on the EventTopic.
    pub name: &'static str,
    /// The log that it is on.
    pub log: Log,
    /// The names of its event types, and of the snapshots of its documents.
    pub event_types: Vec<Name>,
    /// Its slices.
    pub slices: Vec<SliceInfo>,
    /// Its views.
    pub views: Vec<Definition>,
    /// Its functions that are not slices.
    pub functions: Vec<FunctionInfo>,
}

/// A function that is not a slice.
#[derive(Clone, Debug)]
pub struct FunctionInfo {
    /// Its name, which is that of its binary.
    pub name: &'static str,
    /// The path of the HTTP API at which it answers GET.
    pub get: Option<&'static str>,
}

/// A slice.
#[derive(Clone, Debug)]
pub struct SliceInfo {
    /// Its name, which is that of its binary.
    pub name: &'static str,
    /// What its command does, for people.
    pub about: &'static str,
    /// The types of events that its decision reads.
    pub reads: Vec<Name>,
    /// The types of events that it writes.
    pub writes: Vec<Name>,
    /// The types of events that it reacts to.
    pub reacts_to: &'static [Cause],
}

impl Stack {
    /// What `M` lists.
    ///
    /// # Errors
    /// Two contexts contradict each other.
    pub fn of<M: Members>() -> Result<Self, CatalogError> {
        let mut found = Found { catalogs: Vec::new(), contexts: Vec::new() };
        MemberList::walk::<M>(&mut found);
        let catalogs = found.catalogs.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(Self { catalog: Catalog::compose(catalogs)?, contexts: found.contexts })
    }

    /// The slices with their contexts, in the order of the list.
    pub fn slices(&self) -> impl Iterator<Item = (&ContextInfo, &SliceInfo)> {
        self.contexts.iter().flat_map(|context| context.slices.iter().map(move |s| (context, s)))
    }

    /// The functions of contexts that are not slices, with their contexts, in the order of the list.
    pub fn functions(&self) -> impl Iterator<Item = (&ContextInfo, &FunctionInfo)> {
        self.contexts.iter().flat_map(|context| context.functions.iter().map(move |f| (context, f)))
    }

    /// The views, in the order of the list.
    #[must_use]
    pub fn views(&self) -> Vec<Definition> {
        self.contexts.iter().flat_map(|context| &context.views).copied().collect()
    }

    /// The names of all event types.
    #[must_use]
    pub fn event_types(&self) -> BTreeSet<&str> {
        self.contexts.iter().flat_map(|context| &context.event_types).map(|name| &**name).collect()
    }

    /// The context of this name.
    #[must_use]
    pub fn context(&self, name: &str) -> Option<&ContextInfo> {
        self.contexts.iter().find(|context| context.name == name)
    }
}

struct Found {
    catalogs: Vec<Result<Catalog, CatalogError>>,
    contexts: Vec<ContextInfo>,
}

impl Found {
    fn context<C: Context>(&mut self, log: Log, event_types: Vec<Name>) {
        let (slices, views, functions) = (Vec::new(), Vec::new(), Vec::new());
        self.contexts.push(ContextInfo {
            name: C::NAME,
            log,
            event_types,
            slices,
            views,
            functions,
        });
    }

    fn last(&mut self) -> &mut ContextInfo {
        self.contexts.last_mut().expect("a context lists its slices and views")
    }

    fn slice<S: Slice>(&mut self, reads: Vec<Name>, writes: Vec<Name>) {
        let reacts_to = S::REACTS_TO;
        self.last().slices.push(SliceInfo {
            name: S::NAME,
            about: S::ABOUT,
            reads,
            writes,
            reacts_to,
        });
    }

    fn event_slice<S: Slice<State: State, Writes: Writes>>(&mut self) {
        let reads = ReadsOf::<S>::TYPES.iter().map(|name| Name::Borrowed(name));
        let writes = S::Writes::SCHEMAS.iter().map(|schema| schema.name.clone());
        self.slice::<S>(reads.collect(), writes.collect());
    }
}

/// The types that a context declares, without those of other contexts that it reads.
fn own_types<C: Context>(catalog: &Result<Catalog, CatalogError>) -> Vec<Name> {
    let own = catalog.iter().flat_map(|catalog| {
        let own = |name: &&Name| catalog.context(name) == Some(C::NAME);
        catalog.schemas().map(|schema| &schema.name).filter(own).cloned().collect::<Vec<_>>()
    });
    own.collect()
}

impl Visitor for Found {
    fn dcb_context<C: Context>(&mut self) {
        let catalog = C::catalog();
        self.context::<C>(Log::Dcb, own_types::<C>(&catalog));
        self.catalogs.push(catalog);
    }

    fn aggregate_context<C: Context>(&mut self) {
        self.context::<C>(Log::Aggregate, own_types::<C>(&C::catalog()));
    }

    fn document_context<D: Document, C: Context<Log = Documents<D>>>(&mut self) {
        let snapshots = D::ACCESS.snapshots().into_iter().map(Name::Borrowed);
        let own = own_types::<C>(&C::catalog()).into_iter().chain(snapshots);
        self.context::<C>(Log::Document, own.collect());
    }

    fn dcb_slice<S: Slice<Context: Context<Log = Dcb>>>(&mut self) {
        self.event_slice::<S>();
    }

    fn aggregate_slice<S: Slice<Context: Context<Log = Aggregates>>>(&mut self) {
        self.event_slice::<S>();
    }

    fn document_slice<S: OfDocument>(&mut self) {
        self.event_slice::<S>();
    }

    fn view<V: View>(&mut self) {
        self.last().views.push(Definition::of::<V>());
    }

    fn function<F: Function>(&mut self) {
        self.last().functions.push(FunctionInfo { name: F::NAME, get: F::GET });
    }
}
