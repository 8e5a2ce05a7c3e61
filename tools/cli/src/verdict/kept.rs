//! Dead letters, failed batches, and the queue of commands.

use std::collections::BTreeMap;

use anyhow::Result;
use aws_sdk_sqs::types::QueueAttributeName as Attribute;
use futures::future::join_all;
use ringfence_aws::ms_of_rfc3339;

use super::finding::{Sources, StackFault, Verdict, What, counted};
use crate::dead_letter::To;
use crate::kept::{DeadLetterBox, Receive};
use crate::stack::Named;
use crate::work::{Fate, Tried, look};

/// So many dead letters of a queue or bucket are looked at.
const LOOK_MAX: usize = 10;
const UNNAMED: &str = "dead letters, whose stores are named with --queue, --bucket or --stack";

/// The dead letters of a function, or of a store if they name no function.
#[derive(Default)]
struct Group {
    count: u64,
    since_ms: Option<u64>,
    cause: Option<String>,
    can_be_redriven: bool,
}

pub(super) async fn find(sources: &Sources<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    if sources.queues.is_empty() && sources.buckets.is_empty() {
        verdict.unknown.push(UNNAMED);
    }
    let queues = join_all(sources.queues.iter().map(|queue| of_queue(sources, queue)));
    let buckets = join_all(sources.buckets.iter().map(|bucket| of_bucket(sources, bucket)));
    let (queues, buckets, queued) = tokio::join!(queues, buckets, queued(sources));
    let stores = sources.queues.iter().chain(sources.buckets);
    let mut groups = BTreeMap::<String, Group>::new();
    for (Named { name, .. }, found) in stores.zip(queues.into_iter().chain(buckets)) {
        match found {
            Err(error) => {
                verdict.unreadable(&format!("dead letters of {name}"), "/dead-letters", &error);
            }
            Ok(found) => found.into_iter().for_each(|tried| note(&mut groups, name, tried)),
        }
    }
    verdict.findings.extend(groups.into_iter().map(|(name, group)| group.finding(name)));
    verdict.counts.queued = queued;
    verdict
}

fn note(groups: &mut BTreeMap<String, Group>, store: &str, tried: Tried) {
    let Tried { whose, history, kept, fate, .. } = tried;
    let group = groups.entry(whose.function.unwrap_or_else(|| store.to_owned())).or_default();
    let failed = history.first_failed.as_deref().and_then(ms_of_rfc3339);
    group.count += 1;
    group.since_ms = group.since_ms.into_iter().chain(failed).min();
    group.can_be_redriven |= !matches!(fate, Fate::Stays(_));
    let cause = kept.or_else(|| fate.cause().map(str::to_owned));
    group.cause = group.cause.take().or(cause);
}

impl Group {
    fn finding(self, name: String) -> StackFault {
        let Self { count, since_ms, cause, can_be_redriven } = self;
        let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        let what = counted(count, "dead letter", "dead letters");
        let step = match can_be_redriven {
            true => "Mend the cause, then redrive",
            false => "Delete with a reason",
        };
        let (text, url) = (format!("{what} of {name}{cause}"), "/dead-letters".to_owned());
        StackFault { what: What::DeadLetters, name, count, since_ms, text, url, step }
    }
}

async fn of_queue(sources: &Sources<'_>, queue: &Named) -> Result<Vec<Tried>> {
    first(DeadLetterBox::queue(sources.config, &queue.at, Receive::Look)).await
}

async fn of_bucket(sources: &Sources<'_>, bucket: &Named) -> Result<Vec<Tried>> {
    let to = To::of_function(&bucket.name);
    first(DeadLetterBox::bucket(sources.config, &bucket.at, to).await?).await
}

async fn first(mut store: DeadLetterBox) -> Result<Vec<Tried>> {
    let mut found = Vec::new();
    while found.len() < LOOK_MAX {
        let some = store.next().await?;
        if some.is_empty() {
            break;
        }
        for kept in some {
            if kept.body.is_none() {
                kept.dead_letter?;
            } else {
                found.push(look(kept.dead_letter, kept.name));
            }
        }
    }
    Ok(found)
}

/// About how many commands wait in the queue.
async fn queued(sources: &Sources<'_>) -> Option<u64> {
    let client = aws_sdk_sqs::Client::new(sources.config);
    let asked = client.get_queue_attributes().queue_url(sources.command_queue?);
    let asked = asked.attribute_names(Attribute::ApproximateNumberOfMessages);
    let found = asked.send().await.ok()?.attributes?;
    found.get(&Attribute::ApproximateNumberOfMessages)?.parse().ok()
}
