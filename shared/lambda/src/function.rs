//! One invocation from payload to answer.

use std::{
    marker::PhantomData,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures::future::LocalBoxFuture;
use lambda_runtime::{Context as Lambda, Diagnostic};
use ringfence::{Envelope, HandleError, Handled, Metadata, OnLog, Slice, StoreError, TopicEvent};
use ringfence_dynamo::{Clock, Meter};
use ringfence_function::{Issuers, LOGGED_BYTES_MAX, Problem, bounded, chain, http};
use serde_json::{Value, json};

use crate::{
    answer,
    invocation::{Invocation, Payload, Surroundings},
    telemetry::Line,
    unsettled,
};

/// The time before the deadline that is left for the answer itself, in milliseconds.
const ANSWER_MS: u64 = 250;

/// A slice with the log that it runs on. Lambda sends one invocation at a time, so the meter's difference
/// over an invocation is the cost of that invocation.
pub(crate) struct Function<S, L> {
    on: L,
    slice: PhantomData<S>,
    clock: Clock,
    meter: Meter,
    issuers: Issuers,
    cold: AtomicBool,
}

/// A function of any slice.
pub(crate) trait AnyFunction {
    fn call<'a>(&'a self, payload: &'a str, lambda: &'a Lambda) -> LocalBoxFuture<'a, Invoked>;
}

impl<S: Slice, L: OnLog<S>> AnyFunction for Function<S, L> {
    fn call<'a>(&'a self, payload: &'a str, lambda: &'a Lambda) -> LocalBoxFuture<'a, Invoked> {
        Box::pin(self.invoke(payload, lambda))
    }
}

/// An answer, and what to log about it.
pub(crate) struct Invoked {
    pub(crate) answer: Result<Value, Diagnostic>,
    pub(crate) line: Line,
}

impl<S: Slice, L: OnLog<S>> Function<S, L> {
    pub(crate) fn new(on: L, clock: Clock, meter: Meter) -> Self {
        let (issuers, cold) = (Issuers::default(), AtomicBool::new(true));
        Self { on, slice: PhantomData, clock, meter, issuers, cold }
    }

    /// The same function, which knows the aliases of these issuers.
    pub(crate) fn with_issuers(self, issuers: Issuers) -> Self {
        Self { issuers, ..self }
    }

    #[cfg(test)]
    pub(crate) fn on(&self) -> &L {
        &self.on
    }

    pub(crate) async fn invoke(&self, payload: &str, lambda: &Lambda) -> Invoked {
        let before = self.meter.snapshot();
        let started_ms = self.clock.now_ms();
        let mut line = Line {
            timestamp_ms: started_ms,
            slice: S::NAME,
            function_request_id: lambda.request_id.clone(),
            cold_start: self.cold.swap(false, Ordering::Relaxed),
            command_id: None,
            correlation_id: None,
            causation_id: None,
            principal: None,
            by: None,
            outcome: "nothing-to-do", // an event that leads to no command
            attempts: 0,
            conflicts: Vec::new(),
            duration_ms: 0,
            usage: before.clone(),
            cause: None,
        };
        let payload = Payload::of(payload);
        let http = matches!(payload, Payload::Http(_));
        let answer = match Invocation::<S>::parse(&payload, &self.issuers) {
            Ok(Invocation::Event(event, commands)) => {
                self.react(&event, commands, lambda, &mut line).await
            }
            Ok(Invocation::Replay(replay)) => {
                line.outcome = "replay-ignored";
                let cause = format!("the rule takes events of the replay {replay}");
                line.cause = Some(logged(&cause));
                Ok(json!({ "answers": [] }))
            }
            Ok(Invocation::Command(Err(problem), surroundings)) => {
                // By these ids its caller finds the line.
                line.command_id = surroundings.command_id;
                line.correlation_id = surroundings.correlation_id;
                line.principal = surroundings.principal.map(|who| logged(&who.to_string()));
                line.outcome = problem.kind;
                line.cause = Some(problem.detail().to_owned());
                Ok(answer_to_caller(Err(problem), http))
            }
            Ok(Invocation::Command(Ok(command), surroundings)) => {
                let envelope = self.envelope(surroundings.envelope(&self.clock), lambda);
                let answer = self.command(&command, &envelope, lambda, &mut line).await;
                Ok(answer_to_caller(answer, http))
            }
            Err(problem) => {
                line.outcome = problem.kind;
                line.cause = Some(problem.detail().to_owned());
                if matches!(payload, Payload::Bus(_)) {
                    Err(problem.diagnostic())
                } else {
                    Ok(answer_to_caller(Err(problem), http))
                }
            }
        };
        line.duration_ms = self.clock.now_ms().saturating_sub(started_ms);
        line.usage = self.meter.snapshot().since(&before);
        Invoked { answer, line }
    }

    /// Runs one command and notes in `line` what became of it.
    async fn command(
        &self,
        command: &S,
        envelope: &Envelope,
        lambda: &Lambda,
        line: &mut Line,
    ) -> Result<Value, Problem> {
        let text = |key| envelope.metadata.text(key).map(logged);
        line.command_id = text("commandId");
        line.correlation_id = text("correlationId");
        line.causation_id = text("causationId");
        line.principal = text(Metadata::PRINCIPAL);
        line.by = text(Metadata::BY);
        match self.handle(command, envelope).await {
            Ok(handled) => {
                line.attempts += handled.attempts;
                line.met(&handled.conflicts);
                let answer = answer::of_handled(handled);
                line.outcome = answer.as_ref().map_or_else(|problem| problem.kind, |_| "accepted");
                answer
            }
            Err(error) => {
                let problem = unsettled::problem(&error, &lambda.request_id);
                line.outcome = problem.kind;
                line.attempts += unsettled::attempts(&error);
                line.met(&unsettled::conflicts(&error));
                line.cause = Some(chain(&error));
                Err(problem)
            }
        }
    }

    /// Carries out one command before the deadline, or answers that its outcome is unknown. Otherwise Lambda
    /// would end the process without an answer.
    async fn handle(&self, command: &S, envelope: &Envelope) -> Result<Handled, HandleError> {
        let work = self.on.handle(command, envelope);
        let Some(deadline_ms) = envelope.deadline_ms else {
            return work.await;
        };
        let left = Duration::from_millis(deadline_ms.saturating_sub(self.clock.now_ms()));
        tokio::time::timeout(left, work).await.unwrap_or_else(|late| {
            Err(StoreError::OutcomeUnknown { attempts: 1, source: late.into() }.into())
        })
    }

    /// Tries all commands of an event. If one gets no answer, the invocation fails. Then the bus delivers the
    /// event again, and after the last attempt keeps it. The commands' ids absorb those that took effect.
    async fn react(
        &self,
        event: &TopicEvent,
        commands: Vec<(String, S)>,
        lambda: &Lambda,
        line: &mut Line,
    ) -> Result<Value, Diagnostic> {
        let mut answers = Vec::with_capacity(commands.len());
        let mut failed = None;
        for (key, command) in commands {
            let envelope =
                self.envelope(Surroundings::of_event::<S>(event, key, &self.clock), lambda);
            match self.command(&command, &envelope, lambda, line).await {
                Ok(answer) => answers.push(answer),
                Err(problem) if problem.settles_reaction() => answers.push(problem.document()),
                Err(problem) => failed = Some(problem),
            }
        }
        match failed {
            None => Ok(json!({ "answers": answers })),
            Some(problem) => {
                line.outcome = problem.kind;
                Err(problem.diagnostic())
            }
        }
    }

    /// The envelope of a command, with the time that is left for it.
    fn envelope(&self, envelope: Envelope, lambda: &Lambda) -> Envelope {
        // Emulators of the runtime send deadlines that are long past; these do not count.
        let deadline_ms = Some(lambda.deadline)
            .filter(|deadline| *deadline > envelope.context.now_ms)
            .map(|deadline| deadline.saturating_sub(ANSWER_MS));
        Envelope { deadline_ms, ..envelope }
    }
}

fn logged(text: &str) -> String {
    bounded(text, LOGGED_BYTES_MAX)
}

fn answer_to_caller(answer: Result<Value, Problem>, is_http: bool) -> Value {
    if is_http { http(answer) } else { answer.unwrap_or_else(Problem::document) }
}
