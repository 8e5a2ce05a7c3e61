//! Dead letters, failed batches, and the queue of commands.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};
use aws_config::SdkConfig;
use aws_sdk_sqs::types::QueueAttributeName as Attribute;
use futures::future::join_all;
use ringfence_aws::ms_of_rfc3339;
use ringfence_core::rfc3339;

use super::finding::{QUEUED_LATE_MS, StackFault, StackVerdict, What, counted};
use super::sources::{VerdictFlags, VerdictSources};
use crate::dead_letter::To;
use crate::kept::{DeadLetterBox, Kept, Receive};
use crate::service::{Answer, CLOUDWATCH, FORM, Service, encoded, texts};
use crate::stack::Named;
use crate::work::{Fate, Tried, look};

/// So many dead letters of a queue or bucket are looked at.
const LOOK_MAX: usize = 10;
/// The newest value of a metric of SQS is at most so old: ten minutes, in milliseconds.
const METRIC_MS: u64 = 10 * 60_000;
const UNAGED: &str = "how long commands have waited in the queue, for which cloudwatch:GetMetricStatistics is needed";
const UNNAMED: &str = "dead letters, whose stores are named with --queue, --bucket or --stack";

/// The dead letters of a function, or of a store if they name no function.
#[derive(Default)]
struct Group {
    count: u64,
    /// Whether it may be more.
    or_more: bool,
    since_ms: Option<u64>,
    cause: Option<String>,
    can_be_redriven: bool,
}

pub(super) async fn find(sources: &VerdictSources<'_>, now_ms: u64) -> StackVerdict {
    let mut verdict = StackVerdict::default();
    let VerdictFlags { queues: dead, buckets, command_queue, .. } = sources.flags;
    if dead.is_empty() && buckets.is_empty() {
        verdict.unknown.push(UNNAMED);
    }
    let of_queues = join_all(dead.iter().map(|queue| of_queue(sources, queue)));
    let of_buckets = join_all(buckets.iter().map(|bucket| of_bucket(sources, bucket)));
    let queued = of_commands(sources, command_queue.as_deref(), now_ms, &mut verdict);
    let (of_queues, of_buckets, ()) = tokio::join!(of_queues, of_buckets, queued);
    let stores = dead.iter().chain(buckets);
    let mut groups = BTreeMap::<String, Group>::new();
    let mut count = (!dead.is_empty() || !buckets.is_empty()).then_some(0);
    for (Named { name, .. }, found) in stores.zip(of_queues.into_iter().chain(of_buckets)) {
        match found {
            Err(error) => {
                count = None;
                verdict.unreadable(&format!("dead letters of {name}"), "/dead-letters", &error);
            }
            Ok(mut found) => {
                count = count.map(|count| count + found.count());
                for (tried, _) in &mut found.first {
                    if let Some(name) = tried.whose.in_stack(sources.stack) {
                        tried.whose.function = Some(name.to_owned());
                    }
                }
                note(&mut groups, name, found);
            }
        }
    }
    verdict.counts.dead_letters = count;
    verdict.findings.extend(groups.into_iter().map(|(name, group)| group.finding(name)));
    verdict
}

/// The first dead letters of a store, each with the time since which it is kept, and about how many a queue has.
struct Found {
    first: Vec<(Tried, Option<u64>)>,
    in_queue: Option<u64>,
}

impl Found {
    fn count(&self) -> u64 {
        self.in_queue.unwrap_or_default().max(self.first.len() as u64)
    }
}

fn note(groups: &mut BTreeMap<String, Group>, store: &str, found: Found) {
    let or_more = found.first.len() >= LOOK_MAX;
    let count = found.count();
    let name = |tried: &Tried| tried.whose.function.clone().unwrap_or_else(|| store.to_owned());
    let names: BTreeSet<_> = found.first.iter().map(|(tried, _)| name(tried)).collect();
    // A count of a queue is exact for a function only if no other function is in sight.
    let is_exact = names.len() == 1 && found.in_queue.is_some();
    if let Some(only) = names.first().filter(|_| is_exact) {
        groups.entry(only.clone()).or_default().count += count - found.first.len() as u64;
    }
    for (tried, at_ms) in found.first {
        let group = groups.entry(name(&tried)).or_default();
        let Tried { history, kept, fate, .. } = tried;
        let failed = history.first_failed.as_deref().and_then(ms_of_rfc3339).or(at_ms);
        group.count += 1;
        group.or_more |= or_more && !is_exact;
        group.since_ms = group.since_ms.into_iter().chain(failed).min();
        group.can_be_redriven |= !matches!(fate, Fate::Stays(_));
        let cause = kept.or_else(|| fate.cause().map(str::to_owned));
        group.cause = group.cause.take().or(cause);
    }
}

impl Group {
    fn finding(self, name: String) -> StackFault {
        let Self { count, or_more, since_ms, cause, can_be_redriven } = self;
        let what = match or_more {
            true => format!("{count} or more dead letters"),
            false => counted(count, "dead letter", "dead letters"),
        };
        let step = match can_be_redriven {
            true => "Mend the cause, then redrive",
            false => "Delete with a reason",
        };
        let (text, url) = (format!("{what} of {name}"), "/dead-letters".to_owned());
        let (what, names) = (What::DeadLetters, vec![name]);
        StackFault { what, names, count, since_ms, text, cause, url, step }
    }
}

async fn of_queue(sources: &VerdictSources<'_>, queue: &Named) -> Result<Found> {
    let store = DeadLetterBox::queue(sources.config, &queue.at, Receive::Look);
    let (first, counts) = tokio::join!(first(store), counts(sources, &queue.at));
    Ok(Found { first: first?, in_queue: counts.ok().map(|[visible, _]| visible) })
}

async fn of_bucket(sources: &VerdictSources<'_>, bucket: &Named) -> Result<Found> {
    let to = To::of_function(&bucket.name);
    let first = first(DeadLetterBox::bucket(sources.config, &bucket.at, to).await?).await?;
    Ok(Found { first, in_queue: None })
}

async fn first(mut store: DeadLetterBox) -> Result<Vec<(Tried, Option<u64>)>> {
    let mut found = Vec::new();
    while found.len() < LOOK_MAX {
        let some = store.next().await?;
        if some.is_empty() {
            break;
        }
        for kept in some {
            found.push(looked(kept)?);
        }
    }
    Ok(found)
}

/// It fails if the dead letter can't be read now.
fn looked(Kept { name, body, dead_letter, at_ms, .. }: Kept) -> Result<(Tried, Option<u64>)> {
    let dead_letter = if body.is_none() { Ok(dead_letter?) } else { dead_letter };
    Ok((look(dead_letter, name), at_ms))
}

/// How many commands wait in the queue, and whether the first one waits for too long.
async fn of_commands(
    sources: &VerdictSources<'_>,
    queue: Option<&str>,
    now_ms: u64,
    verdict: &mut StackVerdict,
) {
    let Some(url) = queue else { return };
    let [visible, hidden] = match counts(sources, url).await {
        Ok(counts) => counts,
        Err(error) => return verdict.unreadable("queue of commands", "/commands", &error),
    };
    verdict.counts.queued = Some(visible);
    // The age is asked for only if there is something that can wait.
    if visible + hidden == 0 {
        return;
    }
    let answer = ask_age(sources.config, url, now_ms).await;
    aged(answer, visible, now_ms, verdict);
}

/// Adds what CloudWatch says of the age of the first command.
fn aged(answer: Result<Answer>, count: u64, now_ms: u64, verdict: &mut StackVerdict) {
    if answer.as_ref().is_ok_and(|it| it.status >= 400 && it.text.contains("AccessDenied")) {
        return verdict.unknown.push(UNAGED);
    }
    match answer.and_then(Answer::accepted).and_then(|text| newest_ms(&text)) {
        Ok(age_ms) => verdict.findings.extend(waits(age_ms, count, now_ms)),
        Err(error) => verdict.unreadable("age of queued commands", "/commands", &error),
    }
}

/// The fault of a queue whose first command is as old as this.
fn waits(age_ms: Option<u64>, count: u64, now_ms: u64) -> Option<StackFault> {
    let age_ms = age_ms.filter(|age_ms| *age_ms > QUEUED_LATE_MS)?;
    let minutes = counted(age_ms / 60_000, "minute", "minutes");
    Some(StackFault {
        what: What::Queue,
        names: vec!["commands".to_owned()],
        count: count.max(1),
        since_ms: Some(now_ms.saturating_sub(age_ms)),
        text: format!("The first command in the queue has waited for {minutes}"),
        cause: None,
        url: "/commands".to_owned(),
        step: "Look which commands fail; if none does, look at run-commands",
    })
}

/// Asks for the age of the oldest message of a queue, by its metric: SQS itself does not tell.
async fn ask_age(config: &SdkConfig, url: &str, now_ms: u64) -> Result<Answer> {
    let queue = url.rsplit('/').next().unwrap_or_default();
    let (since, until) = (rfc3339(now_ms.saturating_sub(METRIC_MS)), rfc3339(now_ms));
    let body = format!(
        "Action=GetMetricStatistics&Version=2010-08-01&Namespace=AWS/SQS\
         &MetricName=ApproximateAgeOfOldestMessage&Statistics.member.1=Maximum&Period=60\
         &Dimensions.member.1.Name=QueueName&Dimensions.member.1.Value={}&StartTime={}&EndTime={}",
        encoded(queue),
        encoded(&since),
        encoded(&until)
    );
    Service::of(config, CLOUDWATCH).await?.call("POST", "/", &FORM, &body).await
}

/// The newest value of a metric in seconds; `None` if it has none of the last minutes. The values come in no order.
fn newest_ms(answer: &str) -> Result<Option<u64>> {
    let times = texts(answer, "Timestamp")?;
    let newest = times.into_iter().zip(texts(answer, "Maximum")?).max();
    let Some((_, seconds)) = newest else { return Ok(None) };
    let age = Duration::try_from_secs_f64(seconds.parse()?)?;
    Ok(Some(u64::try_from(age.as_millis())?))
}

/// About how many messages of a queue are visible, and how many are hidden.
async fn counts(sources: &VerdictSources<'_>, url: &str) -> Result<[u64; 2]> {
    let kinds =
        [Attribute::ApproximateNumberOfMessages, Attribute::ApproximateNumberOfMessagesNotVisible];
    let asked = aws_sdk_sqs::Client::new(sources.config).get_queue_attributes().queue_url(url);
    let asked = asked.set_attribute_names(Some(kinds.to_vec())).send().await?;
    let found = asked.attributes.unwrap_or_default();
    let count = |kind| found.get(&kind)?.parse().ok();
    let [visible, hidden] = kinds.map(count);
    visible.zip(hidden).map(|(visible, hidden)| [visible, hidden]).context("SQS names no counts")
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::dead_letter::{History, Whose};

    #[test]
    fn a_dead_letter_that_is_wrong_is_found_and_one_that_can_t_be_read_now_is_an_error() {
        for (body, is_found) in [(Some("hello".to_owned()), true), (None, false)] {
            let (name, handle, dead_letter) = ("a".to_owned(), String::new(), Err(anyhow!("no")));
            let kept = Kept { name, handle, body, dead_letter, at_ms: None };
            assert_eq!(looked(kept).is_ok(), is_found);
        }
    }

    #[test]
    fn a_count_is_of_the_whole_queue_or_says_that_there_may_be_more() {
        let text = |in_queue, functions: [&str; 2]| {
            let tried = |number: usize| Tried {
                name: number.to_string(),
                whose: Whose { function: Some(functions[number % 2].to_owned()), rule: None },
                history: History::default(),
                kept: None,
                fate: Fate::Left,
            };
            let at = |number| Some(7 + number as u64);
            let first = (0..LOOK_MAX).map(|number| (tried(number), at(number))).collect();
            let mut groups = BTreeMap::new();
            note(&mut groups, "q", Found { first, in_queue });
            let (name, group) = groups.pop_first().expect("a group");
            let StackFault { text, since_ms, .. } = group.finding(name);
            assert_eq!(since_ms, Some(7));
            text
        };
        assert_eq!(text(Some(5_000), ["a", "a"]), "5000 dead letters of a");
        assert_eq!(text(Some(5_000), ["a", "b"]), "5 or more dead letters of a");
        assert_eq!(text(None, ["a", "a"]), "10 or more dead letters of a");
    }

    #[test]
    fn a_command_waits_too_long_after_ten_minutes_by_the_newest_value_of_the_metric() {
        let point = |minute: u64, seconds: f64| {
            let time = format!("<Timestamp>2026-01-01T00:{minute:02}:00Z</Timestamp>");
            format!("<member><Maximum>{seconds}</Maximum>{time}</member>")
        };
        let newest = |points: &[(u64, f64)]| {
            let points: String = points.iter().map(|(at, value)| point(*at, *value)).collect();
            newest_ms(&format!("<All xmlns='a'>{points}</All>")).expect("numbers")
        };
        assert_eq!(newest(&[]), None);
        assert_eq!(newest(&[(1, 700.0), (3, 601.5), (2, 900.0)]), Some(601_500));
        let text = |age_ms| waits(age_ms, 0, QUEUED_LATE_MS * 2).map(|fault| fault.text);
        assert_eq!([None, Some(QUEUED_LATE_MS)].map(text), [None, None]);
        let waited = "The first command in the queue has waited for 10 minutes";
        assert_eq!(text(Some(QUEUED_LATE_MS + 1)).as_deref(), Some(waited));
        let refused = |code: &str| {
            let (text, mut verdict) =
                (format!("<E><Code>{code}</Code></E>"), StackVerdict::default());
            aged(Ok(Answer { status: 403, text }), 1, 0, &mut verdict);
            (verdict.unknown, verdict.findings.len())
        };
        assert_eq!(refused("AccessDenied"), (vec![UNAGED], 0));
        assert_eq!(refused("InvalidClientTokenId"), (vec![], 1));
    }
}
