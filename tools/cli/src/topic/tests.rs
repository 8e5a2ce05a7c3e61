use std::sync::Mutex;

use futures::FutureExt;
use futures::future::BoxFuture;
use ringfence_services::topic::Unreachable;
use tokio::time::Instant;

use super::*;

/// A bus that follows a script, then takes everything.
#[derive(Default)]
struct Script {
    answers: Mutex<Vec<Result<Vec<Verdict>, Unreachable>>>,
    /// How long each call takes.
    takes: Duration,
    /// The details of each call, and its time.
    calls: Mutex<Vec<(Instant, Vec<String>)>>,
}

impl Script {
    fn of(mut answers: Vec<Result<Vec<Verdict>, Unreachable>>) -> Self {
        answers.reverse();
        Self { answers: Mutex::new(answers), ..Self::default() }
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(_, details)| details.join(" ")).collect()
    }
}

impl Bus for Script {
    fn put<'a>(
        &'a self,
        entries: &'a [&'a TopicEntry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>> {
        async move {
            let details = entries.iter().map(|entry| entry.detail.clone()).collect();
            self.calls.lock().unwrap().push((Instant::now(), details));
            tokio::time::sleep(self.takes).await;
            let scripted = self.answers.lock().unwrap().pop();
            scripted.unwrap_or_else(|| Ok(vec![Verdict::Sent; entries.len()]))
        }
        .boxed()
    }
}

fn entries(count: usize) -> Vec<TopicEntry> {
    let entry = |n: usize| TopicEntry {
        source: "replay.ordering".to_owned(),
        detail_type: "OrderPlaced".to_owned(),
        detail: n.to_string(),
        id: n.to_string(),
        time_ms: Some(1_700_000_000_000),
    };
    (0..count).map(entry).collect()
}

fn later() -> Verdict {
    Verdict::Later("ThrottlingException".to_owned())
}

fn unreachable(refused: bool) -> Unreachable {
    Unreachable { operation: "PutEvents", refused, source: "gone".into() }
}

/// The most events within any second.
fn busiest_second(bus: &Script) -> usize {
    let calls = bus.calls.lock().unwrap();
    let within = |start: Instant| {
        let second = calls.iter().filter(|(at, _)| *at >= start && *at - start < SECOND);
        second.map(|(_, details)| details.len()).sum()
    };
    calls.iter().map(|(at, _)| within(*at)).max().unwrap_or_default()
}

const SECOND: Duration = Duration::from_secs(1);

async fn check_rate(rate: u32, takes: Duration, least: Duration) {
    let bus = Script { takes, ..Script::default() };
    let start = Instant::now();
    let refused = send(&bus, &entries(95), NonZeroU32::new(rate)).await.unwrap();
    assert!(refused.is_empty());
    assert_eq!(bus.calls().len(), 10, "ten entries a call");
    assert!(start.elapsed() >= least, "{rate}: {:?}", start.elapsed());
    let busiest = busiest_second(&bus);
    // A call's entries begin together.
    assert!(busiest < rate as usize + CALL_ENTRIES_MAX, "{rate}: {busiest} in a second");
}

#[tokio::test(start_paused = true)]
async fn no_second_has_more_events_than_the_rate() {
    check_rate(20, Duration::ZERO, Duration::from_millis(4_750)).await;
    check_rate(1, Duration::ZERO, 95 * SECOND).await;
    check_rate(1_000, Duration::ZERO, Duration::from_millis(95)).await;
    // A slow bus limits the rate, and no burst follows.
    check_rate(20, 2 * SECOND, 20 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn entries_that_are_put_off_are_sent_again_and_the_others_are_not() {
    let bus = Script::of(vec![
        Ok(vec![Verdict::Sent, later(), Verdict::Never("too odd".to_owned())]),
        Err(unreachable(false)),
        Ok(vec![later()]),
    ]);
    let refused = send(&bus, &entries(3), None).await.unwrap();
    assert_eq!(bus.calls(), ["0 1 2", "1", "1", "1"]);
    assert_eq!(refused, Refused::from([(2, "too odd".to_owned())]));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_as_a_whole_is_cut_in_halves() {
    let sent = || Ok(vec![Verdict::Sent]);
    let refuses = || Err(unreachable(true));
    let answers = vec![refuses(), sent(), refuses(), refuses(), Ok(vec![later()])];
    let bus = Script::of(answers);
    let refused = send(&bus, &entries(3), None).await.unwrap();
    assert_eq!(bus.calls(), ["0 1 2", "0", "1 2", "1", "2", "2"]);
    assert_eq!(refused, Refused::from([(1, "PutEvents failed: gone".to_owned())]));
}

#[tokio::test(start_paused = true)]
async fn sending_to_a_bus_that_takes_nothing_ends_with_the_cause() {
    let throttled = (0..SENDS_MAX).map(|_| Ok(vec![later()])).collect();
    let error = send(&Script::of(throttled), &entries(1), None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the bus did not take all events in 30 attempts: ThrottlingException"
    );
}

#[test]
fn a_call_holds_ten_entries_and_a_megabyte() {
    let mut entries = entries(13);
    assert_eq!(calls(&entries), [0..10, 10..13]);
    entries[1].detail = "x".repeat(CALL_BYTES_MAX - 2 * entries[0].bytes());
    assert_eq!(calls(&entries), [0..2, 2..12, 12..13]);
    assert!(calls(&[]).is_empty());
}
