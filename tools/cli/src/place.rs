//! Flags that say where to begin in the index, and which events are wanted.

use std::collections::BTreeSet;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use clap::Args;
use ringfence_core::Tag;
use ringfence_feed::{Checkpoint, CheckpointError, Filter, Index};
use ringfence_new::near;
use ringfence_stack::Stack;

use crate::remark;

/// A checkpoint, or a name for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointName {
    /// Before the first entry.
    Start,
    /// After the last entry.
    End,
    /// After this entry.
    At(Checkpoint),
}

impl FromStr for CheckpointName {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        match text {
            "start" => Ok(Self::Start),
            "end" => Ok(Self::End),
            number => number.parse().map(Self::At),
        }
    }
}

impl CheckpointName {
    /// The checkpoint. One after the end of the index would skip future events, so it is an error.
    pub async fn checkpoint(self, index: &Index) -> Result<Checkpoint> {
        match self {
            Self::Start => Ok(Checkpoint::START),
            Self::End => Ok(index.end().await?),
            Self::At(at) => {
                let end = index.end().await?;
                ensure!(at <= end, "checkpoint {at} is after the end of the index, {end}");
                Ok(at)
            }
        }
    }
}

/// Selects events.
#[derive(Args)]
pub struct Wanted {
    /// Only events of this type. Repeat the flag for several types.
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only events with this tag. Repeated, the flag selects events that have all of the tags.
    #[arg(long = "tag", value_name = "KEY:VALUE", value_parser = tag)]
    tags: Vec<Tag>,
}

impl Wanted {
    /// Warns of types and tags that no context of this build has. That is not an error: the index keeps events of
    /// earlier versions and of other programs.
    pub(crate) fn warn(&self, stack: &Stack) {
        let known = stack.event_types();
        for unknown in self.types.iter().filter(|wanted| !known.contains(wanted.as_str())) {
            remark!(
                "warning: no context of this build has an event type {unknown}{}",
                near(unknown, &known)
            );
        }
        let tags = || stack.catalog.schemas().flat_map(|schema| schema.tags.iter());
        let is_blind = |tag: &&Tag| {
            let number = tag.value.strip_prefix('b').and_then(|rest| rest.split_once('.'));
            let is_of_vault = number.is_some_and(|(number, _)| number.parse::<u32>().is_ok());
            !is_of_vault && tags().any(|of| of.blind && of.key == tag.key)
        };
        for Tag { key, .. } in self.tags.iter().filter(is_blind) {
            remark!(
                "warning: the tag {key} is blind, so no event has it with this value. Give the value that an event has, \
                 which begins with b and a number"
            );
        }
        let known: BTreeSet<_> = tags().map(|tag| &*tag.key).collect();
        for tag in self.tags.iter().filter(|tag| !known.contains(&*tag.key)) {
            remark!(
                "warning: no event of this build has a tag {}{}",
                tag.key,
                near(&tag.key, &known)
            );
        }
    }

    /// The index filter that selects them.
    pub fn filter(&self) -> Filter {
        Filter { types: self.types.iter().cloned().collect(), tags: self.tags.clone() }
    }
}

/// A tag, as a person writes it.
pub(crate) fn tag(text: &str) -> Result<Tag> {
    let parts = text.split_once(':').filter(|(key, value)| !key.is_empty() && !value.is_empty());
    let (key, value) = parts.with_context(|| {
        format!("{text:?} is not a tag: a tag is KEY:VALUE, such as orderId:ord-1")
    })?;
    Ok(Tag::new(key.to_owned(), value))
}
