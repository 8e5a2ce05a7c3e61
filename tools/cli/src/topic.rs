//! Sends entries to the bus at a limited rate, each until the bus takes or refuses it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Result, bail};
use aws_config::SdkConfig;
use futures::future::join;
use ringfence_aws::Retry;
use ringfence_services::topic::{
    Bus, CALL_BYTES_MAX, CALL_ENTRIES_MAX, Topic, TopicEntry, Verdict,
};

/// A call is sent at most this often, which takes half a minute. Then a person should look.
const SENDS_MAX: u32 = 30;

/// The bus of this name.
pub(crate) fn topic(config: &SdkConfig, bus: &str) -> Topic {
    Topic::new(aws_sdk_eventbridge::Client::new(config), bus.to_owned())
}

/// The entries that the bus refuses for good: their indexes, and why.
pub(crate) type Refused = BTreeMap<usize, String>;

/// Sends entries in their order, one call at a time. With a rate r, a call of n entries takes at least n/r seconds, so
/// a slow bus does not get a burst afterwards.
pub(crate) async fn send(
    bus: &impl Bus,
    entries: &[TopicEntry],
    per_second: Option<NonZeroU32>,
) -> Result<Refused> {
    let mut refused = Refused::new();
    for call in calls(entries) {
        let least = per_second.map_or(Duration::ZERO, |rate| {
            let entries = u32::try_from(call.len()).unwrap_or(u32::MAX);
            Duration::from_secs(1) * entries / rate.get()
        });
        let put = put(bus, entries, call.collect(), &mut refused);
        let (put, ()) = join(put, tokio::time::sleep(least)).await;
        put?;
    }
    Ok(refused)
}

/// The calls that send these entries, each as full as possible.
fn calls(entries: &[TopicEntry]) -> Vec<Range<usize>> {
    let mut calls: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (place, entry) in entries.iter().enumerate() {
        match calls.last_mut() {
            Some(call)
                if call.len() < CALL_ENTRIES_MAX
                    && bytes + entry.sent_bytes() <= CALL_BYTES_MAX =>
            {
                call.end += 1;
                bytes += entry.sent_bytes();
            }
            _ => {
                calls.push(place..place + 1);
                bytes = entry.sent_bytes();
            }
        }
    }
    calls
}

/// Sends one call, and repeats the entries that the bus could not take yet.
async fn put(
    bus: &impl Bus,
    entries: &[TopicEntry],
    mut left: Vec<usize>,
    refused: &mut Refused,
) -> Result<()> {
    let mut attempts = Retry::default().attempts_max(SENDS_MAX).start();
    loop {
        let call: Vec<&TopicEntry> = left.iter().map(|place| &entries[*place]).collect();
        let verdicts = ringfence_services::topic::put(bus, &call).await;
        let mut later = None;
        let mut put_off = Vec::new();
        for (place, verdict) in left.into_iter().zip(verdicts) {
            match verdict {
                Verdict::Sent => {}
                Verdict::Never(cause) => drop(refused.insert(place, cause)),
                Verdict::Later(cause) => {
                    put_off.push(place);
                    later = Some(cause);
                }
            }
        }
        let Some(cause) = later else { return Ok(()) };
        if !attempts.again().await {
            bail!("the bus did not take all events in {} attempts: {cause}", attempts.made());
        }
        left = put_off;
    }
}

#[cfg(test)]
mod tests;
