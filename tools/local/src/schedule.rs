//! Schedules: functions that are invoked at certain times.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    clock,
    delivery::Delivery,
    invoke::Invoke,
    stack_clock::StackClock,
    template::{ACCOUNT, REGION, Schedule},
};

/// Invokes the schedule's function at its times, until there are no more.
pub(crate) async fn run<I: Invoke>(
    schedule: Schedule,
    delivery: Arc<Delivery<I>>,
    clock: StackClock,
) {
    let mut deliveries = JoinSet::new();
    let mut time = schedule.times.first(clock.now());
    while let Some(next) = time {
        clock.reach(next).await;
        while deliveries.try_join_next().is_some() {}
        let (delivery, schedule) = (delivery.clone(), schedule.clone());
        deliveries.spawn(async move {
            let arn = arn(&schedule.name);
            delivery.deliver(&arn, &schedule.target, &event(&arn, next)).await;
        });
        // After sleep, a machine does not make up for missed times.
        time = schedule.times.next(next.max(clock.now()));
    }
    deliveries.join_all().await;
}

fn arn(name: &str) -> String {
    format!("arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/default/{name}")
}

/// The payload for a function if the schedule has no input.
fn event(arn: &str, time: DateTime<Utc>) -> Value {
    json!({
        "version": "0",
        "id": clock::id(),
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": ACCOUNT,
        "time": time.to_rfc3339_opts(SecondsFormat::Secs, true),
        "region": REGION,
        "resources": [arn],
        "detail": "{}",
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;
    use crate::{
        buckets::Buckets,
        destinations::Destinations,
        invoke::InvokeError,
        notices::Notices,
        queues::Queues,
        template::{DeliveryTarget, Retries},
        times::Times,
    };

    /// A function that records its payloads.
    struct Fake(UnboundedSender<(String, Value)>);

    impl Invoke for Fake {
        async fn invoke(&self, function: &str, payload: &Value) -> Result<Value, InvokeError> {
            let _ = self.0.send((function.to_owned(), payload.clone()));
            Ok(Value::Null)
        }
    }

    /// The payloads of a schedule that runs in the background.
    fn start(rate: Duration, clock: &StackClock) -> UnboundedReceiver<(String, Value)> {
        let (sender, given) = unbounded_channel();
        let buckets = Buckets::new("/nowhere".into(), Vec::new());
        let destinations = Destinations { queues: Queues::new([]), buckets };
        let delivery = Delivery::new(&[], Arc::new(Fake(sender)), destinations, Notices::default());
        let schedule = Schedule {
            name: "Sweep".to_owned(),
            expression: String::new(),
            times: Times::Rate(rate),
            target: DeliveryTarget {
                function: "sweep".to_owned(),
                retries: Retries { attempts_max: None, age_max: None },
                dead_letter_queue: None,
            },
        };
        // It ends with the runtime of the test.
        tokio::spawn(run(schedule, Arc::new(delivery), clock.clone()));
        given
    }

    #[tokio::test]
    async fn a_schedule_invokes_its_function_again_and_again() {
        let mut given = start(Duration::from_millis(20), &StackClock::default());
        for _ in 0..3 {
            let (function, event) = given.recv().await.expect("an invocation");
            assert_eq!((&*function, &event["source"]), ("sweep", &json!("aws.scheduler")));
            let arn = "arn:aws:scheduler:us-east-1:000000000000:schedule/default/Sweep";
            assert_eq!(event["resources"], json!([arn]));
        }
    }

    #[tokio::test]
    async fn a_schedule_does_not_wait_for_time_that_a_person_has_let_pass() {
        const DAY: Duration = Duration::from_hours(24);
        let clock = StackClock::default();
        let mut given = start(DAY, &clock);
        given.recv().await.expect("it begins at once");
        clock.pass(2 * 86_400_000).expect("within a hundred years");
        let (_, event) = given.recv().await.expect("an invocation");
        let time: DateTime<Utc> = event["time"].as_str().expect("a text").parse().expect("a time");
        assert!(time > clock::now() && time < clock.now(), "{time}");
        let error = clock.pass(u64::MAX).expect_err("it is too much").to_string();
        assert_eq!(error, "the clock of a stack is at most 36500 days ahead");
    }

    #[tokio::test]
    async fn a_machine_that_slept_does_not_make_up_for_what_it_has_missed() {
        let mut given = start(Duration::from_nanos(1), &StackClock::default());
        let awake = async |given: &mut UnboundedReceiver<(String, Value)>| {
            let (_, event) = given.recv().await.expect("an invocation");
            let time: DateTime<Utc> =
                event["time"].as_str().expect("a text").parse().expect("a time");
            time.timestamp()
        };
        let before = awake(&mut given).await;
        // Nothing else runs until the next second has begun.
        while clock::now().timestamp() <= before {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut after = Vec::new();
        for _ in 0..5 {
            after.push(awake(&mut given).await);
        }
        assert!(after[4] > before, "{after:?} after {before}");
    }
}
