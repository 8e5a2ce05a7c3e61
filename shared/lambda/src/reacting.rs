//! A slice that reacts to events in the process of another function.

use aws_sdk_dynamodb::Client;
use lambda_runtime::{Context as Lambda, Diagnostic};
use ringfence::{Context, LogOf, SequencedEvent, Slice, TopicEvent};
use ringfence_dynamo::Clock;
use ringfence_logs::{BoxError, InTable, Log};
use serde_json::json;

use crate::function::{AnyFunction, Function, Invoked};
use crate::telemetry::Line;

/// The warm decisions that it keeps.
const KEPT: usize = 10;

/// An open slice that reacts to events as its own function does, with the same line of the log. It takes one event at a
/// time.
pub struct Reacting(Box<dyn AnyFunction>);

impl Reacting {
    /// The slice on its log in this table.
    ///
    /// # Errors
    /// The slice can't be on the log.
    pub fn open<S: Slice<Context: Context<Log: Log<S>>>>(
        client: Client,
        table: String,
    ) -> Result<Self, BoxError> {
        let clock = Clock::system();
        let (on, meter) = LogOf::<S>::open(InTable::new(client, table, clock.clone()), KEPT)?;
        Ok(Self(Box::new(Function::<S, _>::new(on, clock, meter))))
    }

    /// Carries out the commands to which the event leads.
    ///
    /// # Errors
    /// A command has no answer that settles it.
    pub async fn react(&self, event: &SequencedEvent) -> Result<(), Diagnostic> {
        let entry = json!({
            "detail-type": event.event_type,
            "source": event.context,
            "detail": TopicEvent::new(event.clone()),
        });
        let lambda = Lambda::default();
        let Invoked { answer, lines } = self.0.call(&entry.to_string(), &lambda).await;
        lines.iter().for_each(Line::write);
        answer.map(drop)
    }
}
