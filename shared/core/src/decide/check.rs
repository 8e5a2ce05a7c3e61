//! Checks at a function's start that a slice's command, its events and the catalog agree.

use crate::{
    Catalog, CatalogError, EventSchema, Name, Plan, PlanError, Slice, TagSchema,
    decide::once::is_record,
    decide::shapes::{Declared, made_up, omissions},
};

/// Checks, when a function starts, that command, events and catalog agree and that every consumed type has a route.
///
/// # Errors
/// The first disagreement.
pub fn check<S: Slice>(catalog: &Catalog) -> Result<(), SliceError> {
    Declared::of::<S>().check(catalog)
}

/// The reads of a slice's commands: the plans of made-up commands, with and without a value for each of their options
/// and lists.
///
/// # Errors
/// A command has no plan.
pub fn plans<S: Slice>(catalog: &Catalog) -> Result<Vec<Plan>, SliceError> {
    Declared::of::<S>().plans(catalog)
}

/// A disagreement between a slice and its catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// The catalog contradicts itself.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The catalog lacks a written type, or has it in another form.
    #[error("{slice} writes {event_type}, which the catalog does not declare; add it there")]
    Undeclared {
        /// The slice.
        slice: &'static str,
        /// The event type.
        event_type: Name,
    },
    /// A written type is retired.
    #[error("{slice} writes {event_type}, which is retired: write the type that took its place")]
    Retired {
        /// The slice.
        slice: &'static str,
        /// The event type.
        event_type: Name,
    },
    /// Command and catalog disagree on the scope of a key.
    #[error(
        "{slice}: tag {key} is {catalog} in the catalog, but the command says otherwise; {fix}"
    )]
    Scope {
        /// The slice.
        slice: &'static str,
        /// The tag key.
        key: Name,
        /// The scope in the catalog.
        catalog: &'static str,
        /// The way out.
        fix: &'static str,
    },
    /// A command that lacks values for some of its tags can't be planned.
    #[error("{slice}, when a command has no {without}: {reason}")]
    Omitted {
        /// The slice.
        slice: &'static str,
        /// The tags without a value.
        without: String,
        /// Why there is no plan.
        reason: PlanError,
    },
    /// The slice's own query asks for a type that its fold does not have.
    #[error("{slice}: its query asks for {event_type}; add the type to what the slice reads")]
    NotRead {
        /// The slice.
        slice: &'static str,
        /// The event type.
        event_type: Name,
    },
    /// A command on a log of single streams could write to a stream that it does not read.
    #[error(
        "{slice}: its command does not name every stream that it writes to, and a log of streams knows the repeat of a \
         command by the events of the streams that it reads: give the command a field for each stream, one value each, \
         marked #[tag(partition)] or, for several of one kind, #[tag(key = \"…\")]"
    )]
    NoRecord {
        /// The slice.
        slice: &'static str,
    },
    /// A consumed type lacks a tag of the command, so nothing asks for its events.
    #[error(
        "{slice}: no read returns {event_type}, because it has no {keys}, and a decision reads the \
         events that have all tags of its command: give the event the tag, mark the command's field \
         #[tag(skip)], make the field a list, so that each tag is read on its own, or ask for \
         {event_type} in the slice's own `query`"
    )]
    Lacks {
        /// The slice.
        slice: &'static str,
        /// The event type.
        event_type: Name,
        /// The tags that it lacks.
        keys: String,
    },
    /// The slice's own query lacks a type that its fold has.
    #[error("{slice}: its query does not ask for {event_type}; write a clause for it")]
    NotAsked {
        /// The slice.
        slice: &'static str,
        /// The event type.
        event_type: Name,
    },
    /// The query has no plan.
    #[error("{slice}: {source}")]
    Route {
        /// The slice.
        slice: &'static str,
        /// The cause.
        source: PlanError,
    },
}

/// Checks that the catalog has each type that the slice writes, and that none of them is retired.
///
/// # Errors
/// The first type for which this is not so.
pub fn check_writes<S: Slice>(catalog: &Catalog) -> Result<(), SliceError> {
    Declared::of::<S>().check_writes(catalog)
}

impl Declared {
    fn check(self, catalog: &Catalog) -> Result<(), SliceError> {
        self.check_writes(catalog)?;
        if catalog.is_of_streams() && !is_record(self, catalog) {
            return Err(SliceError::NoRecord { slice: self.slice });
        }
        for shape in self.shapes {
            self.check_scopes(shape, catalog)?;
            self.check_routes(shape, catalog)?;
        }
        self.plans(catalog).map(drop)
    }

    fn check_writes(self, catalog: &Catalog) -> Result<(), SliceError> {
        for written in self.writes {
            let (slice, event_type) = (self.slice, written.name.clone());
            if catalog.schema(&written.name) != Some(written) {
                return Err(SliceError::Undeclared { slice, event_type });
            }
            if written.retired {
                return Err(SliceError::Retired { slice, event_type });
            }
        }
        Ok(())
    }

    fn plans(self, catalog: &Catalog) -> Result<Vec<Plan>, SliceError> {
        let shapes = self.shapes.iter().map(|shape| self.plans_of(shape, catalog));
        Ok(shapes.collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn check_scopes(self, shape: &[TagSchema], catalog: &Catalog) -> Result<(), SliceError> {
        let error = |key: &Name, catalog, fix| SliceError::Scope {
            slice: self.slice,
            key: key.clone(),
            catalog,
            fix,
        };
        for tag in shape {
            match (tag.cross_partition, catalog.is_cross_partition(&tag.key)) {
                (false, Some(true)) => {
                    let fix = "mark the field #[tag(cross_partition)]";
                    return Err(error(&tag.key, "cross-partition", fix));
                }
                (true, Some(false)) => {
                    let fix = "remove #[tag(cross_partition)] from the field";
                    return Err(error(&tag.key, "partition-scoped", fix));
                }
                (_, None) => {
                    let fix = "mark the field #[tag(skip)], or tag an event with it";
                    return Err(error(&tag.key, "no tag of any event", fix));
                }
                _ if tag.blind != catalog.is_blind(&tag.key) => {
                    let is = if tag.blind { "not blind" } else { "blind" };
                    let fix = "mark both fields #[tag(blind)], or give one another key";
                    return Err(error(&tag.key, is, fix));
                }
                _ => {}
            }
            let partitions = |written: &EventSchema| {
                written.tags.iter().any(|t| t.partition && t.key == tag.key)
            };
            if tag.partition && !self.writes.iter().all(partitions) {
                let fix = "mark the field that partitions the written events #[tag(partition)]";
                return Err(error(&tag.key, "not the partition of what is written", fix));
            }
        }
        Ok(())
    }

    /// The plans of made-up commands of this shape, with and without each of its options and lists. A tag without a
    /// value reads nothing, but the other tags must have a route. No plan may ask for a type that the slice does not
    /// read.
    fn plans_of(self, shape: &[TagSchema], catalog: &Catalog) -> Result<Vec<Plan>, SliceError> {
        let slice = self.slice;
        let mut plans = Vec::new();
        for omitted in omissions(shape) {
            let plan = match made_up(self, shape, &omitted, catalog) {
                // The function refuses such a command.
                Err(PlanError::Nothing) => continue,
                planned => planned.map_err(|reason| {
                    let without: Vec<&str> = omitted.iter().map(|n| &*shape[*n].key).collect();
                    SliceError::Omitted { slice, without: without.join(" and no "), reason }
                })?,
            };
            let mut asked = plan.reads.iter().flat_map(|read| &read.types);
            if let Some(event_type) = asked.find(|asked| !self.reads.contains(&&***asked)) {
                return Err(SliceError::NotRead { slice, event_type: event_type.clone() });
            }
            plans.push(plan);
        }
        Ok(plans)
    }

    /// Plans a made-up command of this shape, and checks that its query asks for every type that the slice reads.
    fn check_routes(self, shape: &[TagSchema], catalog: &Catalog) -> Result<(), SliceError> {
        let slice = self.slice;
        let error = |source| SliceError::Route { slice, source };
        let plan = made_up(self, shape, &[], catalog);
        for &event_type in self.reads {
            let Some(schema) = catalog.schema(event_type) else {
                return Err(error(PlanError::UnknownType(event_type.to_owned())));
            };
            let is_read = match &plan {
                Ok(plan) => plan.reads_type(event_type),
                // An empty query does not ask for this type.
                Err(PlanError::Nothing) => false,
                Err(reason) => return Err(error(reason.clone())),
            };
            if !is_read {
                let has = |key: &Name| schema.tags.iter().any(|tag| tag.key == *key);
                let lacking: Vec<&str> = shape
                    .iter()
                    .map(|tag| &tag.key)
                    .filter(|key| !has(key))
                    .map(|key| &**key)
                    .collect();
                let event_type = event_type.into();
                return Err(match &lacking[..] {
                    [] => SliceError::NotAsked { slice, event_type },
                    _ => SliceError::Lacks { slice, event_type, keys: lacking.join(" and no ") },
                });
            }
        }
        plan.map(drop).map_err(error)
    }
}
