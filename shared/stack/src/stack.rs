//! A stack in plain values.

use std::collections::BTreeSet;

use ringfence::{
    Catalog, CatalogError, Catalogs, Cause, Context, LogKind, LogName, Name, Reads, ReadsOf, Slice,
    Writes,
};
use ringfence_logs::Log;
use ringfence_views::{Definition, View, project_views::Folded};

use crate::{Function, MemberList, Members, Visitor};

/// What a stack has, without the code of its slices.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Every event type of the DCB log.
    pub catalog: Catalog,
    /// The catalogs of all contexts, by which events of any log are made current.
    pub catalogs: Catalogs,
    /// The contexts, in the order of the list.
    pub contexts: Vec<ContextInfo>,
}

/// A context.
#[derive(Clone, Debug)]
pub struct ContextInfo {
    /// Its name, which is the source of its events on the EventTopic.
    pub name: &'static str,
    /// The log that it is on.
    pub log: LogKind,
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
    /// The parameters of the query of such a request.
    pub query: &'static [&'static str],
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
    /// The scopes of which a token needs one.
    pub scopes: &'static [&'static str],
}

impl Stack {
    /// What `M` lists.
    ///
    /// # Errors
    /// A context contradicts itself, or two contexts each other.
    pub fn of<M: Members>() -> Result<Self, CatalogError> {
        let mut found = Found { dcb: Vec::new(), others: Vec::new(), contexts: Vec::new() };
        MemberList::walk::<M>(&mut found);
        let all = |catalogs: Vec<_>| catalogs.into_iter().collect::<Result<Vec<_>, _>>();
        let (catalog, mut catalogs) = (Catalog::compose(all(found.dcb)?)?, all(found.others)?);
        catalogs.push(catalog.clone());
        Ok(Self { catalog, catalogs: Catalogs(catalogs), contexts: found.contexts })
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

    /// The views with the catalogs of what they read, as project-views needs them.
    #[must_use]
    pub fn folded(self) -> Folded {
        Folded { views: self.views(), catalogs: self.catalogs }
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
    /// Of the contexts on the DCB log.
    dcb: Vec<Result<Catalog, CatalogError>>,
    others: Vec<Result<Catalog, CatalogError>>,
    contexts: Vec<ContextInfo>,
}

impl Found {
    fn last(&mut self) -> &mut ContextInfo {
        self.contexts.last_mut().expect("a context lists its slices and views")
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
    fn context<C: Context>(&mut self) {
        let (catalog, log) = (C::catalog(), C::Log::KIND);
        let snapshots = C::Log::snapshots().into_iter().map(Name::Borrowed);
        let event_types = own_types::<C>(&catalog).into_iter().chain(snapshots).collect();
        let (slices, views, functions) = (Vec::new(), Vec::new(), Vec::new());
        let name = C::NAME;
        self.contexts.push(ContextInfo { name, log, event_types, slices, views, functions });
        match log {
            LogKind::Dcb => self.dcb.push(catalog),
            LogKind::Aggregates | LogKind::Documents => self.others.push(catalog),
        }
    }

    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        let writes = S::Writes::SCHEMAS.iter().map(|schema| schema.name.clone());
        self.last().slices.push(SliceInfo {
            name: S::NAME,
            about: S::ABOUT,
            reads: ReadsOf::<S>::TYPES.iter().map(|name| Name::Borrowed(name)).collect(),
            writes: writes.collect(),
            reacts_to: S::REACTS_TO,
            scopes: S::SCOPES,
        });
    }

    fn view<V: View>(&mut self) {
        self.last().views.push(Definition::of::<V>());
    }

    fn function<F: Function>(&mut self) {
        let (name, get, query) = (F::NAME, F::GET, F::QUERY);
        self.last().functions.push(FunctionInfo { name, get, query });
    }
}
