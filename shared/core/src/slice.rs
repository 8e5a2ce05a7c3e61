//! One use case: command, events read, fold, decision, events written, rejections.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    BoundaryId, Catalog, CatalogError, Consistency, EventError, EventSchema, FedEvent, NewEvent,
    Place, Plan, PlanError, Query, Sequence, SequencedEvent, Tag, TagSchema,
};

/// A command. Derive it: fields named `*_id` and `*_ids` are tags, JSON is camelCase, and a field
/// that the command does not have is refused. A repeat under an idempotency key is known by its JSON,
/// so equal commands have equal JSON: use `Vec` or `BTreeSet`, whose order stays, and no `HashSet`.
pub trait Command: Serialize + DeserializeOwned + Send + Sync {
    /// The tags of each variant; a struct has one.
    const SHAPES: &'static [&'static [TagSchema]];

    /// Which of the shapes this command has.
    fn shape(&self) -> &'static [TagSchema];

    /// The tags of this command, in the order of its fields.
    fn tags(&self) -> Vec<Tag>;
}

/// The events that a slice reads. Derive it for an enum of type names, each with the fields that
/// the fold needs.
pub trait Reads: Sized {
    /// The type names.
    const TYPES: &'static [&'static str];

    /// Decodes an event of one of the types.
    fn decode<P: Place>(event: &SequencedEvent<P>) -> Result<Self, serde_json::Error>;
}

/// The events that a slice writes: one event type, or a derived enum of several.
pub trait Writes {
    /// Their schemas.
    const SCHEMAS: &'static [EventSchema];

    /// The event, ready for a log.
    ///
    /// # Errors
    /// It can't be read back.
    fn into_event(self) -> Result<NewEvent, EventError>;
}

/// Why a decision refuses a command, for a person (`Display`) and for a program: serialised with
/// `#[serde(tag = "code")]`. Its fields become members of the problem document, so none has the name
/// of a member that is there already; the kit's cases say so.
pub trait Rejection: std::error::Error + Serialize + Send {}

impl<R: std::error::Error + Serialize + Send> Rejection for R {}

/// The rejection of a slice that refuses nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub enum Never {}

/// What a decision may know besides the events: a decision that needs the time takes it from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Milliseconds since 1970, as the writer's clock says, and never below the time of an event that
    /// the decision has read, so that differences to a `#[time]` field are not negative.
    pub now_ms: u64,
    /// Names this command.
    pub command_id: String,
    /// Who gives it, if known.
    pub principal: Option<String>,
}

/// An event as the EventTopic delivers it: the `detail` of the bus's entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopicEvent {
    /// Deduplicates: no other event has it.
    pub id: String,
    /// Type name.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The partition that stores it.
    pub partition: String,
    /// Orders the events of a partition.
    pub position: Sequence,
    /// When it was recorded: RFC 3339, UTC. Empty in an entry that is older than this field.
    #[serde(default)]
    pub recorded_at: String,
    /// What it is about.
    pub tags: Vec<Tag>,
    /// The payload.
    pub data: Value,
    /// Metadata by key.
    pub meta: crate::Metadata,
    /// The name of the replay that sends the event again; absent from what happened just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
}

impl TopicEvent {
    /// An event as the EventTopic delivers it when it is new.
    #[must_use]
    pub fn new(event: FedEvent) -> Self {
        Self {
            id: event.id(),
            event_type: event.event_type,
            partition: event.partition.to_string(),
            position: event.position,
            recorded_at: event.recorded_at,
            tags: event.tags,
            data: event.data,
            meta: event.metadata,
            replay: None,
        }
    }
}

/// One use case. `evolve` and `decide` are pure.
pub trait Slice: Command {
    /// Name in kebab case: of the Lambda, and the last part of its HTTP path.
    const NAME: &'static str;
    /// The first part of its HTTP path.
    const CONTEXT: &'static str;
    /// How the first read is made. Eventual is half the price, and no less safe; a slice whose
    /// retries cost more than that asks for strong.
    const CONSISTENCY: Consistency = Consistency::Eventual;

    /// The events that it reads.
    type Reads: Reads;
    /// What it folds them to.
    type State: Default + Send;
    /// The events that it writes.
    type Writes: Writes;
    /// Why it refuses.
    type Rejection: Rejection;

    /// The catalog that declares its events.
    fn catalog() -> Result<Catalog, CatalogError>;

    /// Folds one event into the state.
    fn evolve(state: Self::State, event: Self::Reads) -> Self::State;

    /// The events that follow from the command, none when what it asks for is already so.
    fn decide(
        state: &Self::State,
        command: &Self,
        context: &Context,
    ) -> Result<Vec<Self::Writes>, Self::Rejection>;

    /// The commands that an event of the EventTopic leads to; `None` when the slice does not react
    /// to its type. An error says that the payload is not what the type promises.
    fn react(_event: &TopicEvent) -> Result<Option<Vec<Self>>, serde_json::Error> {
        Ok(None)
    }

    /// The thing that a command of an event is about: the command's tags that have one value. An event
    /// leads to one command about a thing, and that takes effect once, also when a later version of
    /// [`Slice::react`] makes another command about it.
    fn about(&self) -> String {
        let is_list = |tag: &Tag| self.shape().iter().any(|of| of.many && of.key == tag.key);
        let tags: Vec<Tag> = self.tags().into_iter().filter(|tag| !is_list(tag)).collect();
        BoundaryId::composite(&tags).to_string()
    }

    /// The query of a command of this shape with these tags. A slice that needs another, such as every
    /// event of a type although the command has one of its tags, writes its own. It has the tags and
    /// not the command, so that [`Slice::check`] can plan, at the start, the query that will run.
    fn query(shape: &[TagSchema], tags: Vec<Tag>, catalog: &Catalog) -> Query {
        Query::of_command(shape, tags, Self::Reads::TYPES, catalog)
    }

    /// Checks, when a function starts, that command, events and catalog agree and that every
    /// consumed type has a route.
    fn check(catalog: &Catalog) -> Result<(), SliceError> {
        check_written::<Self>(catalog)?;
        for shape in Self::SHAPES {
            check_scopes::<Self>(shape, catalog)?;
            check_routes::<Self>(shape, catalog)?;
        }
        Self::plans(catalog).map(drop)
    }

    /// What a command of this slice can read: the plans of made-up commands, with and without a value for
    /// each of their options and lists.
    fn plans(catalog: &Catalog) -> Result<Vec<Plan>, SliceError> {
        let shapes = Self::SHAPES.iter().map(|shape| plans::<Self>(shape, catalog));
        Ok(shapes.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

/// A disagreement between a slice and its catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceError {
    /// The catalog itself is contradictory.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A written type is not in the catalog as the slice writes it.
    #[error("{slice} writes {event_type}, which the catalog does not declare; add it there")]
    Undeclared {
        /// The slice.
        slice: &'static str,
        /// The event type.
        event_type: &'static str,
    },
    /// Command and catalog disagree on the scope of a key.
    #[error(
        "{slice}: tag {key} is {catalog} in the catalog, but the command says otherwise; {fix}"
    )]
    Scope {
        /// The slice.
        slice: &'static str,
        /// The tag key.
        key: &'static str,
        /// What the catalog says.
        catalog: &'static str,
        /// What to write.
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
    /// The slice's own query asks for a type that its fold does not know.
    #[error("{slice}: its query asks for {event_type}; add the type to what the slice reads")]
    NotRead {
        /// The slice.
        slice: &'static str,
        /// The event type.
        event_type: &'static str,
    },
    /// No read returns a consumed type.
    #[error("{slice}: {source}")]
    Route {
        /// The slice.
        slice: &'static str,
        /// Why.
        source: PlanError,
    },
}

fn check_written<S: Slice>(catalog: &Catalog) -> Result<(), SliceError> {
    match S::Writes::SCHEMAS.iter().find(|written| catalog.schema(written.name) != Some(*written)) {
        None => Ok(()),
        Some(written) => Err(SliceError::Undeclared { slice: S::NAME, event_type: written.name }),
    }
}

fn check_scopes<S: Slice>(shape: &[TagSchema], catalog: &Catalog) -> Result<(), SliceError> {
    let error = |key, catalog, fix| SliceError::Scope { slice: S::NAME, key, catalog, fix };
    for tag in shape {
        match (tag.cross_partition, catalog.is_cross_partition(tag.key)) {
            (false, Some(true)) => {
                let fix = "mark the field #[tag(cross_partition)]";
                return Err(error(tag.key, "cross-partition", fix));
            }
            (true, Some(false)) => {
                let fix = "remove #[tag(cross_partition)] from the field";
                return Err(error(tag.key, "partition-scoped", fix));
            }
            (_, None) => {
                let fix = "mark the field #[tag(skip)], or tag an event with it";
                return Err(error(tag.key, "no tag of any event", fix));
            }
            _ => {}
        }
        let partitions =
            |written: &EventSchema| written.tags.iter().any(|t| t.partition && t.key == tag.key);
        if tag.partition && !S::Writes::SCHEMAS.iter().all(partitions) {
            let fix = "mark the field that partitions the written events #[tag(partition)]";
            return Err(error(tag.key, "not the partition of what is written", fix));
        }
    }
    Ok(())
}

/// Of up to this many options and lists of a command, every set is tried without values. Of more, these
/// sets are: the empty one, each option or list alone, and all together.
const OMITTED_SETS_MAX: usize = 6;

/// The sets of tags, by their places, that a command of this shape may have no value for.
fn omissions(shape: &[TagSchema]) -> Vec<Vec<usize>> {
    let optional: Vec<usize> = (0..shape.len()).filter(|n| !shape[*n].required).collect();
    if optional.len() > OMITTED_SETS_MAX {
        let each = optional.iter().map(|n| vec![*n]);
        return each.chain([vec![], optional.clone()]).collect();
    }
    let mut sets = vec![vec![]];
    for n in optional {
        sets.extend(sets.clone().iter().map(|set| [&set[..], &[n]].concat()));
    }
    sets
}

/// The query of a command of this shape with these tags, and its plan.
///
/// # Errors
/// There is no plan. [`PlanError::Nothing`] if the plan would read nothing, or if the command has none of
/// the tags that its types are read by.
pub(crate) fn plan<S: Slice>(
    shape: &[TagSchema],
    tags: Vec<Tag>,
    catalog: &Catalog,
) -> Result<(Query, Plan), PlanError> {
    let names_nothing = !shape.is_empty() && tags.is_empty();
    let query = S::query(shape, tags, catalog);
    match Plan::new(&query, catalog) {
        Ok(plan) if plan.reads.is_empty() => Err(PlanError::Nothing),
        Err(PlanError::TypeAlone(_)) if names_nothing => Err(PlanError::Nothing),
        planned => Ok((query, planned?)),
    }
}

/// The plan of a made-up command of this shape without some of its options and lists. Routes depend on
/// keys and on whether two values of a key differ, and on nothing else of the values.
fn made_up<S: Slice>(
    shape: &[TagSchema],
    omitted: &[usize],
    catalog: &Catalog,
) -> Result<Plan, PlanError> {
    let left = (0..shape.len()).filter(|n| !omitted.contains(n));
    let tags = left.map(|n| Tag::new(shape[n].key, format!("any-{n}"))).collect();
    plan::<S>(shape, tags, catalog).map(|(_, plan)| plan)
}

/// The plans of made-up commands of this shape, with and without each of its options and lists. What is
/// read by a tag without a value is not read then, but the tags that are left must have a route. No plan
/// may ask for a type that the slice does not read.
fn plans<S: Slice>(shape: &[TagSchema], catalog: &Catalog) -> Result<Vec<Plan>, SliceError> {
    let slice = S::NAME;
    let mut plans = Vec::new();
    for omitted in omissions(shape) {
        let plan = match made_up::<S>(shape, &omitted, catalog) {
            // Such a command is refused to its caller.
            Err(PlanError::Nothing) => continue,
            planned => planned.map_err(|reason| {
                let without: Vec<&str> = omitted.iter().map(|n| shape[*n].key).collect();
                SliceError::Omitted { slice, without: without.join(" and no "), reason }
            })?,
        };
        let mut asked = plan.reads.iter().flat_map(|read| &read.types).copied();
        if let Some(event_type) = asked.find(|asked| !S::Reads::TYPES.contains(asked)) {
            return Err(SliceError::NotRead { slice, event_type });
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// Plans a made-up command of this shape, and checks that its query asks for every type that the slice
/// reads.
fn check_routes<S: Slice>(shape: &[TagSchema], catalog: &Catalog) -> Result<(), SliceError> {
    let error = |source| SliceError::Route { slice: S::NAME, source };
    let plan = made_up::<S>(shape, &[], catalog).map_err(error)?;
    for &event_type in S::Reads::TYPES {
        if catalog.schema(event_type).is_none() {
            return Err(error(PlanError::UnknownType(event_type.to_owned())));
        }
        if !plan.reads.iter().any(|read| read.types.contains(event_type)) {
            let keys: Vec<&str> = shape.iter().map(|tag| tag.key).collect();
            return Err(error(PlanError::NoRoute { event_type, keys: keys.join(" or ") }));
        }
    }
    Ok(())
}
