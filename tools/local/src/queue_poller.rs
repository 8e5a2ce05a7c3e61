//! The loop that receives from a queue and invokes its function.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    invoke::Invoke,
    notices::Notices,
    queues::{Queues, Received},
    template::{ACCOUNT, QueueMapping, REGION},
};

/// The pause before an empty queue is polled again.
const IDLE_PAUSE: Duration = Duration::from_millis(20);
/// The most batches at once. Batches of a FIFO queue have different groups.
const BATCHES_MAX: usize = 4;

/// Receives from a queue for one event source mapping.
pub(crate) struct QueuePoller<I> {
    pub(crate) mapping: QueueMapping,
    pub(crate) queues: Queues,
    pub(crate) functions: Arc<I>,
    pub(crate) notices: Notices,
}

impl<I: Invoke> QueuePoller<I> {
    /// Polls for ever.
    pub(crate) async fn run(self) {
        let (this, permits) = (Arc::new(self), Arc::new(Semaphore::new(BATCHES_MAX)));
        let mut batches = JoinSet::new();
        loop {
            let Ok(permit) = permits.clone().acquire_owned().await else { return };
            while batches.try_join_next().is_some() {}
            let QueueMapping { queue, batch_size, .. } = &this.mapping;
            let received = match this.queues.receive(queue, *batch_size, None) {
                Ok(received) => received,
                Err(error) => return this.notices.trouble(&error),
            };
            if received.is_empty() {
                tokio::time::sleep(IDLE_PAUSE).await;
                continue;
            }
            let of_batch = this.clone();
            batches.spawn(async move {
                of_batch.batch(&received).await;
                drop(permit);
            });
        }
    }

    /// Deletes the messages that the function does not name as failed. The others become visible when their time is
    /// over.
    async fn batch(&self, received: &[Received]) {
        let QueueMapping { queue, function, report_item_failures, .. } = &self.mapping;
        let answer = match self.functions.invoke(function, &batch(queue, received)).await {
            Ok(answer) => answer,
            Err(error) => return self.notices.trouble(&error),
        };
        let failed = if *report_item_failures { failed(&answer) } else { BTreeSet::new() };
        for Received { message, receipt_handle, .. } in received {
            if !failed.contains(&message.message_id)
                && let Err(error) = self.queues.delete(queue, receipt_handle)
            {
                self.notices.trouble(&error);
            }
        }
    }
}

/// A batch of messages, in Lambda's format.
#[must_use]
pub fn batch(queue: &str, received: &[Received]) -> Value {
    let record = |Received { message, system, receipt_handle }: &Received| {
        json!({
            "messageId": message.message_id,
            "receiptHandle": receipt_handle,
            "body": message.body,
            "attributes": system,
            "messageAttributes": {},
            "eventSource": "aws:sqs",
            "eventSourceARN": format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}"),
            "awsRegion": REGION,
        })
    };
    json!({ "Records": received.iter().map(record).collect::<Vec<_>>() })
}

/// The ids of the messages that an answer names as failed.
#[must_use]
pub fn failed(answer: &Value) -> BTreeSet<String> {
    let failures = answer["batchItemFailures"].as_array().into_iter().flatten();
    let id = |failure: &Value| failure["itemIdentifier"].as_str().map(str::to_owned);
    failures.filter_map(id).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;
    use crate::invoke::InvokeError;
    use crate::queues::MessageOrder;
    use crate::template::QueueResource;

    /// Fails as a whole on a batch that has `crash`, names `bad` as failed, and records its payloads.
    #[derive(Default)]
    struct Fake(Mutex<Vec<String>>);

    impl Invoke for Fake {
        async fn invoke(&self, function: &str, payload: &Value) -> Result<Value, InvokeError> {
            let records = payload["Records"].as_array().expect("records");
            let bodies: Vec<_> = records.iter().filter_map(|it| it["body"].as_str()).collect();
            self.0.lock().expect("a lock").push(bodies.join(" "));
            if bodies.contains(&"crash") {
                let (function, error) = (function.to_owned(), json!("it crashed"));
                return Err(InvokeError::Function { function, error });
            }
            let is_bad = |it: &&Value| it["body"] == "bad";
            let bad = records.iter().filter(is_bad).map(|it| &it["messageId"]);
            let bad: Vec<_> = bad.map(|id| json!({ "itemIdentifier": id })).collect();
            Ok(json!({ "batchItemFailures": bad }))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn failed_messages_come_again_and_the_others_are_deleted() {
        let resource = QueueResource { is_fifo: true, ..QueueResource::named("orders".into()) };
        let queues = Queues::of_template(&[resource]);
        for (n, (body, group)) in
            [("good", "a"), ("bad", "b"), ("crash", "c")].into_iter().enumerate()
        {
            let order =
                MessageOrder { group: Some(group.into()), deduplication: Some(n.to_string()) };
            queues.put("orders", body.into(), BTreeMap::new(), order).expect("a queue");
        }
        let mapping = QueueMapping {
            queue: "orders".to_owned(),
            function: "run".to_owned(),
            batch_size: 2,
            report_item_failures: true,
        };
        let (fake, notices) = (Arc::<Fake>::default(), Notices::default());
        let poller =
            QueuePoller { mapping, queues: queues.clone(), functions: fake.clone(), notices };
        // The queue hides received messages for 30 seconds.
        let polled = tokio::time::timeout(Duration::from_secs(31), poller.run()).await;
        assert!(polled.is_err(), "it polls for ever");
        let given = fake.0.lock().expect("a lock").clone();
        assert_eq!(given[..2], ["good bad", "crash"]);
        assert_eq!(given[2..], ["bad crash"]);
        let left: Vec<_> = queues.messages()["orders"].iter().map(|it| it.body.clone()).collect();
        assert_eq!(left, ["bad", "crash"]);
    }
}
