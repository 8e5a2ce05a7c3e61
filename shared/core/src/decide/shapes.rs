//! The shapes of a slice's commands: the tags that they can have, and their plans.

use crate::{
    Catalog, EventSchema, Plan, PlanError, Query, Reads, ReadsOf, Slice, Tag, TagSchema, Writes,
};

/// The declarations of a slice, without its types. So plans and checks of its commands are compiled once, and not for
/// each slice.
#[derive(Clone, Copy)]
pub(crate) struct Declared {
    pub(crate) slice: &'static str,
    pub(crate) shapes: &'static [&'static [TagSchema]],
    pub(crate) reads: &'static [&'static str],
    pub(crate) writes: &'static [EventSchema],
    query: fn(&[TagSchema], Vec<Tag>, &Catalog) -> Query,
}

impl Declared {
    pub(crate) fn of<S: Slice>() -> Self {
        Self {
            slice: S::NAME,
            shapes: S::SHAPES,
            reads: ReadsOf::<S>::TYPES,
            writes: S::Writes::SCHEMAS,
            query: S::query,
        }
    }
}

/// With up to this many options and lists, a command is tried without each set of them. With more, it is tried with all
/// of them, without each single one, and without all of them.
const OMITTED_SETS_MAX: usize = 6;

/// The sets of tags, by their indexes, for which a command of this shape may lack values.
pub(crate) fn omissions(shape: &[TagSchema]) -> Vec<Vec<usize>> {
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

/// The query of a command of this shape with these tags, and its plan. Blind tags have several values, each under
/// another key.
///
/// # Errors
/// There is no plan. It is [`PlanError::Nothing`] if the plan would read nothing, or if the command has none of the
/// tags by which its types are read.
pub(crate) fn plan(
    declared: Declared,
    shape: &[TagSchema],
    tags: Vec<Vec<Tag>>,
    catalog: &Catalog,
) -> Result<(Query, Plan), PlanError> {
    let names_nothing = !shape.is_empty() && tags.iter().all(Vec::is_empty);
    let mut query = Query::default();
    for item in tags.into_iter().flat_map(|tags| (declared.query)(shape, tags, catalog).items) {
        if !query.items.contains(&item) {
            query.items.push(item);
        }
    }
    match Plan::new(&query, catalog) {
        Ok(plan) if plan.reads.is_empty() => Err(PlanError::Nothing),
        Err(PlanError::TypeAlone(_)) if names_nothing => Err(PlanError::Nothing),
        planned => Ok((query, planned?)),
    }
}

/// The plan of a made-up command of this shape without some of its options and lists.
pub(crate) fn made_up(
    declared: Declared,
    shape: &[TagSchema],
    omitted: &[usize],
    catalog: &Catalog,
) -> Result<Plan, PlanError> {
    let tags = tags(shape, |n| !omitted.contains(&n));
    plan(declared, shape, vec![tags], catalog).map(|(_, plan)| plan)
}

/// The tags of a made-up command of this shape, for those indexes of the shape that it `has`. A route does not depend
/// on the values, but only on whether two values of a key differ.
pub(crate) fn tags(shape: &[TagSchema], has: impl Fn(usize) -> bool) -> Vec<Tag> {
    let places = (0..shape.len()).filter(|n| has(*n));
    places.map(|n| Tag::new(shape[n].key.clone(), format!("any-{n}"))).collect()
}
