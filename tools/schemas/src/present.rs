//! The locks of the code as it is.

use std::collections::BTreeMap;

use ringfence_core::kit::{Case, DueCase};
use ringfence_core::{
    Catalog, Context, Due, Event, EventSchema, EventVisitor, LogKind, LogName, NewEvent,
    SequencedEvent, Slice, TagSchema, Writes,
};
use ringfence_log::Log;
use ringfence_reactors::Reactor;
use ringfence_stack::{MemberList, Members, Visitor};

use crate::fold::{read_by, steps};
use crate::samples::{add_samples, plain};
use crate::{Lock, LockedCommand, LockedTag, LockedType, LockedVersion, Readers, Shape};

/// The lock of each context that `M` lists, by its name, as if nothing was released before. A type of events has only
/// its newest version, because only the file has the shapes of the others.
///
/// Samples are the payloads of events in the cases of slices. On a log of streams, payloads are stored without the
/// field that names the stream, and readers of the bus and upcasts see them so. Therefore this field is optional in the
/// lock, and samples lack it.
#[must_use]
pub fn present<M: Members>() -> BTreeMap<&'static str, Lock> {
    let mut found = Found { contexts: Vec::new(), events: Vec::new(), histories: Vec::new() };
    MemberList::walk::<M>(&mut found);
    let Found { mut contexts, events, mut histories } = found;
    histories.iter_mut().flatten().for_each(|event| plain(&mut event.data));
    for (context, event) in events {
        let of = contexts.iter_mut().find(|of| of.name == context);
        if let Some(of) = of {
            of.add_sample(event);
        }
    }
    let readers = Readers::of::<M>();
    for OfContext { name, lock, .. } in &mut contexts {
        let folds: Vec<_> = readers.folds(name).collect();
        for fold in &folds {
            lock.folds_mut(fold.kind).insert(fold.name.to_owned(), fold.locked.clone());
        }
        lock.histories.add(read_by(&folds, &histories), |events| steps(&folds, events));
    }
    contexts.into_iter().map(|of| (of.name, of.lock)).collect()
}

/// A context and its lock.
struct OfContext {
    name: &'static str,
    log: LogKind,
    /// `None` if the context contradicts itself. Other checks report that.
    catalog: Option<Catalog>,
    lock: Lock,
}

impl OfContext {
    /// Adds an event of the context to the samples of its type.
    fn add_sample(&mut self, event: NewEvent) {
        let schema = self.catalog.as_ref().and_then(|catalog| catalog.schema(&event.event_type));
        let locked = self.lock.events.get_mut(&*event.event_type);
        let (Some(schema), Some(locked)) = (schema, locked) else { return };
        let NewEvent { tags, mut data, .. } = event;
        plain(&mut data);
        if self.log != LogKind::Dcb {
            tags.iter().for_each(|tag| schema.leave_out_id(&tag.value, &mut data));
        }
        for version in locked.versions.values_mut() {
            add_samples(&mut version.samples, &version.shape, [data.clone()]);
        }
    }
}

struct Found {
    contexts: Vec<OfContext>,
    /// The events of all cases, in their order, each with the context that declares its type.
    events: Vec<(String, NewEvent)>,
    /// The events of each case.
    histories: Vec<Vec<SequencedEvent>>,
}

impl Found {
    fn last(&mut self) -> &mut OfContext {
        self.contexts.last_mut().expect("a context lists its slices and views")
    }
}

impl EventVisitor for Found {
    fn event<E: Event>(&mut self) {
        let of = self.last();
        let is_of_stream = of.log != LogKind::Dcb;
        let locked = || locked(&E::SCHEMA, Shape::of::<E>(), is_of_stream);
        of.lock.events.entry(E::NAME.to_owned()).or_insert_with(locked);
    }
}

/// A type of events with its newest version.
fn locked(schema: &EventSchema, mut shape: Shape, is_of_stream: bool) -> LockedType {
    if is_of_stream && let Shape::Object(members) = &mut shape {
        for name in schema.of_stream() {
            members.entry(name.to_owned()).and_modify(|member| member.is_optional = true);
        }
    }
    let is_composite = schema.tags.iter().filter(|tag| tag.partition).count() > 1;
    let version = LockedVersion { shape, ..LockedVersion::default() };
    LockedType {
        public: false,
        retired: schema.retired,
        tags: schema.tags.iter().map(locked_tag).collect(),
        separator: is_composite.then_some(schema.separator),
        read_as_composite: schema.read_as_composite,
        read_by_type: schema.read_by_type,
        fenced: schema.fenced,
        write: schema.write.map(|write| write.number),
        versions: BTreeMap::from([(schema.upcasts.version(), version)]),
    }
}

fn locked_tag(tag: &TagSchema) -> LockedTag {
    LockedTag {
        key: (*tag.key).to_owned(),
        partition: tag.partition,
        cross_partition: tag.cross_partition,
        strong: tag.strong,
        many: tag.many,
        blind: tag.blind,
    }
}

impl Visitor for Found {
    fn context<C: Context<Log: ringfence_log::Sourced>>(&mut self) {
        self.contexts.push(OfContext {
            name: C::NAME,
            log: C::Log::KIND,
            catalog: C::catalog().ok(),
            lock: Lock::default(),
        });
    }

    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        S::Writes::visit(self);
        let cases = S::cases();
        let of = self.last();
        let rejections = cases.iter().filter_map(|case| case.code()).map(str::to_owned).collect();
        let command = LockedCommand { shape: Shape::of::<S>(), rejections };
        of.lock.commands.insert(S::NAME.to_owned(), command);
        if !S::REACTS_TO.is_empty() {
            of.lock.reactors.insert(S::NAME.to_owned());
        }
        let Some(catalog) = of.catalog.clone() else { return };
        self.histories.extend(cases.iter().map(Case::history));
        let events = cases.iter().flat_map(|case| case.events());
        self.events.extend(events.filter_map(|event| {
            Some((catalog.context(&event.event_type)?.to_owned(), event.clone()))
        }));
    }

    fn event<E: Event>(&mut self) {
        EventVisitor::event::<E>(self);
    }

    fn due<D: Due<Context: Context<Log: Log<D>>>>(&mut self) {
        self.histories.extend(D::due_cases().iter().map(DueCase::history));
    }

    fn reactor<R: Reactor>(&mut self) {
        self.last().lock.reactors.insert(R::NAME.to_owned());
    }
}

#[cfg(test)]
mod tests;
