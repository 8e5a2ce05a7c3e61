//! A stack in plain values.

use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{
    Catalog, CatalogError, Catalogs, Cause, Context, Current, Due, Lane, LogKind, LogName, LogOf,
    Name, Reads, ReadsOf, Slice, Writes, events_are_record, is_personal, route_scopes,
};
use ringfence_lambda::VariableNames;
use ringfence_log::{BoundaryShape, Dependence, Log, Sourced, Sources};
use ringfence_reactors::{Reactor, ReactorFunction};
use ringfence_views::{Definition, LaneReader, View, project_views::Folded};

use crate::{Function, MemberList, Members, Visitor};

/// The members of a stack, without the code of its slices.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The type that lists it, with its crate, such as `stack::Shop`.
    pub name: &'static str,
    /// Every event type of the DCB log.
    pub catalog: Catalog,
    /// The catalogs of all contexts, which make events of any log current.
    pub catalogs: Catalogs,
    /// The logs of all contexts. Without a context it is the DCB log.
    pub sources: Sources,
    /// The contexts, in the order of the list.
    pub contexts: Vec<ContextInfo>,
}

/// A context.
#[derive(Clone, Debug)]
pub struct ContextInfo {
    /// Its name, which is the source of its events on the EventTopic.
    pub name: &'static str,
    /// Its log.
    pub log: LogKind,
    /// The names of its event types, and of the snapshots of its documents.
    pub event_types: Vec<Name>,
    /// On the document log: decisions begin to read a document with unfolds of these types. Empty if they read every
    /// event.
    pub origins: Vec<&'static str>,
    /// Its slices.
    pub slices: Vec<SliceInfo>,
    /// Its dues, under the names of their slices.
    pub dues: Vec<Definition>,
    /// Its views.
    pub views: Vec<Definition>,
    /// Its reactors.
    pub reactors: Vec<ReactorInfo>,
    /// Its functions that are not slices.
    pub functions: Vec<FunctionInfo>,
}

/// A function that is not a slice.
#[derive(Clone, Debug)]
pub struct FunctionInfo {
    /// Its name, and the name of its binary.
    pub name: &'static str,
    /// The path of the HTTP API at which it answers GET.
    pub get: Option<&'static str>,
    /// The query parameters of such a request.
    pub query: &'static [&'static str],
}

/// A reactor.
#[derive(Clone, Debug)]
pub struct ReactorInfo {
    /// Its name, and the name of its binary.
    pub name: &'static str,
    /// It handles the events of a lane one after another.
    pub lane: Lane,
    /// The types of events that it reads.
    pub reads: &'static [&'static str],
    /// The views whose rows it reads.
    pub views: &'static [&'static str],
    /// Whether it reads personal data, in events or in rows.
    pub is_personal: bool,
    /// The variables that its function reads. They are found when they are needed.
    pub variables: fn() -> VariableNames,
    /// The effects of an event that it reads, each as its type prints itself.
    pub plan: fn(&Current<'_>) -> Result<Vec<String>, serde_json::Error>,
}

impl ReactorInfo {
    /// Whether it destroys the keys of personal data: it names their table, and no key of KMS.
    #[must_use]
    pub fn destroys_keys(&self) -> bool {
        let VariableNames { required, .. } = (self.variables)();
        required.contains("KEY_TABLE") && !required.contains("PERSONAL_KEY")
    }
}

/// A slice.
#[derive(Clone, Debug)]
pub struct SliceInfo {
    /// Its name, and the name of its binary.
    pub name: &'static str,
    /// A description of its command, for people.
    pub about: &'static str,
    /// The types of events that its decision reads.
    pub reads: Vec<Name>,
    /// The types of events that it writes.
    pub writes: Vec<Name>,
    /// The types of events that it reacts to.
    pub reacts_to: &'static [Cause],
    /// It reacts to them in this order; `None` if the EventTopic delivers them.
    pub order: Option<Lane>,
    /// The scopes of its route: a token needs one of them. `None` if it has no route, because callers do not give its
    /// commands.
    pub scopes: Option<&'static [&'static str]>,
    /// Whether it reads or writes personal data.
    pub is_personal: bool,
    /// The kinds of boundaries that its decisions can depend on, and how each is read. They are found when they are
    /// needed.
    pub depends_on: fn() -> BTreeMap<BoundaryShape, Dependence>,
    /// Whether an item is the record of its commands with an idempotency key. It is computed when it is needed.
    pub has_item: fn() -> bool,
}

impl Stack {
    /// The stack that `M` lists.
    ///
    /// # Errors
    /// A context contradicts itself, or two contexts each other.
    pub fn of<M: Members>() -> Result<Self, CatalogError> {
        let mut found = Found::default();
        MemberList::walk::<M>(&mut found);
        let all = |catalogs: Vec<_>| catalogs.into_iter().collect::<Result<Vec<_>, _>>();
        let (catalog, mut catalogs) = (Catalog::compose(all(found.dcb)?)?, all(found.others)?);
        catalogs.push(catalog.clone());
        let Found { mut sources, contexts, .. } = found;
        if contexts.is_empty() {
            // The functions of a stack that has no context yet read the log that most contexts will be on.
            sources.add(ringfence_dcb_log::SOURCE);
        }
        let name = type_name::<M>();
        Ok(Self { name, catalog, catalogs: Catalogs(catalogs), sources, contexts })
    }

    /// The slices with their contexts, in the order of the list.
    pub fn slices(&self) -> impl Iterator<Item = (&ContextInfo, &SliceInfo)> {
        self.contexts.iter().flat_map(|context| context.slices.iter().map(move |s| (context, s)))
    }

    /// The slices, as `<context>/<slice>`, whose decisions can depend on a boundary of this shape.
    pub fn that_depend_on(&self, shape: &BoundaryShape) -> impl Iterator<Item = String> {
        let depends = move |(_, slice): &(_, &SliceInfo)| (slice.depends_on)().contains_key(shape);
        self.slices().filter(depends).map(|(of, slice)| format!("{}/{}", of.name, slice.name))
    }

    /// The reactors with their contexts, in the order of the list.
    pub fn reactors(&self) -> impl Iterator<Item = (&ContextInfo, &ReactorInfo)> {
        self.contexts.iter().flat_map(|context| context.reactors.iter().map(move |r| (context, r)))
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

    /// Whether a function of the stack reads, writes or forgets personal data. Then the stack has a table of keys.
    #[must_use]
    pub fn is_personal(&self) -> bool {
        self.slices().any(|(_, slice)| slice.is_personal)
            || self.reactors().any(|(_, reactor)| reactor.is_personal || reactor.destroys_keys())
            || self.views().iter().any(Definition::is_personal)
    }

    /// The views and the dues, in the order of the list: everything that is folded into rows.
    #[must_use]
    pub fn rows(&self) -> Vec<Definition> {
        let of = |context: &ContextInfo| [context.views.clone(), context.dues.clone()].concat();
        self.contexts.iter().flat_map(of).collect()
    }

    /// The views and the dues with their catalogs, and the readers of lanes, for project-views.
    #[must_use]
    pub fn folded(self) -> Folded {
        let reactors =
            self.reactors().map(|(_, it)| LaneReader { name: it.name, types: it.reads.to_vec() });
        let ordered = self.slices().filter(|(_, slice)| slice.order.is_some());
        let ordered = ordered.map(|(_, it)| {
            let types = it.reacts_to.iter().map(|cause| cause.event_type).collect();
            LaneReader { name: it.name, types }
        });
        let lanes = reactors.chain(ordered).collect();
        Folded { views: self.rows(), catalogs: self.catalogs, sources: self.sources, lanes }
    }

    /// The logs, with every event type of the DCB log, for index-events and publish-events.
    #[must_use]
    pub fn logs(self) -> (Sources, Catalog) {
        (self.sources, self.catalog)
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

#[derive(Default)]
struct Found {
    sources: Sources,
    /// The catalogs of the contexts on the DCB log.
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

/// Whether an item is the record of the slice's commands. Logs of streams have no such items.
fn has_item<S: Slice>() -> bool {
    let catalog = S::Context::catalog();
    catalog.is_ok_and(|it| !it.is_of_streams() && !events_are_record::<S>(&it))
}

impl Visitor for Found {
    fn context<C: Context<Log: Sourced>>(&mut self) {
        self.sources.add(C::Log::SOURCE);
        let (catalog, log) = (C::catalog(), C::Log::KIND);
        let snapshots = C::Log::snapshots().into_iter().map(Name::Borrowed);
        let event_types = own_types::<C>(&catalog).into_iter().chain(snapshots).collect();
        self.contexts.push(ContextInfo {
            name: C::NAME,
            log,
            event_types,
            origins: Vec::new(),
            slices: Vec::new(),
            dues: Vec::new(),
            views: Vec::new(),
            reactors: Vec::new(),
            functions: Vec::new(),
        });
        match log {
            LogKind::Dcb => self.dcb.push(catalog),
            LogKind::Aggregates | LogKind::Documents => self.others.push(catalog),
        }
    }

    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        let writes = S::Writes::SCHEMAS.iter().map(|schema| schema.name.clone());
        self.last().origins = LogOf::<S>::origins();
        self.last().slices.push(SliceInfo {
            name: S::NAME,
            about: S::ABOUT,
            reads: ReadsOf::<S>::TYPES.iter().map(|name| Name::Borrowed(name)).collect(),
            writes: writes.collect(),
            reacts_to: S::REACTS_TO,
            order: S::ORDER,
            scopes: const { route_scopes::<S>() },
            is_personal: is_personal::<S>(),
            depends_on: LogOf::<S>::depends_on,
            has_item: has_item::<S>,
        });
    }

    fn due<D: Due<Context: Context<Log: Log<D>>>>(&mut self) {
        self.last().dues.push(Definition::of_due::<D>());
    }

    fn view<V: View>(&mut self) {
        self.last().views.push(Definition::of::<V>());
    }

    fn reactor<R: Reactor>(&mut self) {
        let (name, lane, reads) = (R::NAME, R::LANE, R::Reads::TYPES);
        let variables = || ringfence_lambda::variables::<ReactorFunction<R>>(&());
        let plan = |event: &Current<'_>| {
            let effects = R::plan(&R::Reads::decode(event)?);
            Ok(effects.iter().map(|effect| format!("{effect:?}")).collect())
        };
        let (views, is_personal) = (R::VIEWS, variables().have_vault());
        let reactor = ReactorInfo { name, lane, reads, views, is_personal, variables, plan };
        self.last().reactors.push(reactor);
    }

    fn function<F: Function>(&mut self) {
        let (name, get, query) = (F::NAME, F::GET, F::QUERY);
        self.last().functions.push(FunctionInfo { name, get, query });
    }
}
