//! One invocation from payload to answer.

use std::{
    collections::BTreeMap,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{Issuers, LOGGED_BYTES_MAX, Problem, Sender, bounded, chain, has_time, http};
use futures::future::LocalBoxFuture;
use lambda_runtime::{Context as Lambda, Diagnostic};
use ringfence_aws::{Clock, Meter, Usage};
use ringfence_core::personal::{Form, has};
use ringfence_core::{
    Envelope, HandleError, Handled, LogError, Metadata, OnLog, Outcome, Slice, StoreError,
    TopicEvent, Traceparent, Vault, route_scopes,
};
use serde_json::{Value, json};

use crate::slice::{
    answer,
    invocation::{Given, Invocation, Payload, Surroundings, cause},
    telemetry::Line,
    unsettled,
};

/// The time before the deadline that is reserved for the answer and its way back, in milliseconds, also on a busy
/// machine. If it were too short, the gateway would answer in place of the function.
pub(crate) const ANSWER_MS: u64 = 1_000;

/// A slice with the log that it runs on. Lambda sends one invocation at a time, so the cost of an invocation is the
/// meter's difference.
pub(crate) struct Function<S, L> {
    on: L,
    slice: PhantomData<S>,
    clock: Clock,
    meter: Meter,
    issuers: Issuers,
    per_slice: bool,
    /// Opens the personal data of events that come from the bus, and of commands that come from a queue.
    vault: Option<Arc<dyn Vault>>,
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

/// An answer, and its log lines: one for each command, or one for an invocation without commands.
pub(crate) struct Invoked {
    pub(crate) answer: Result<Value, Diagnostic>,
    pub(crate) lines: Vec<Line>,
}

impl<S: Slice, L: OnLog<S>> Function<S, L> {
    pub(crate) fn new(on: L, clock: Clock, meter: Meter) -> Self {
        let (issuers, cold) = (Issuers::default(), AtomicBool::new(true));
        let (slice, vault) = (PhantomData, None);
        Self { on, slice, clock, meter, issuers, per_slice: false, vault, cold }
    }

    /// The same function in a process that has run others before.
    pub(crate) fn warm(self) -> Self {
        Self { cold: AtomicBool::new(false), ..self }
    }

    /// The same function. Its lines have metrics of the slice if `per_slice` is true.
    pub(crate) fn with_metrics(self, per_slice: bool) -> Self {
        Self { per_slice, ..self }
    }

    /// The same function with a vault.
    pub(crate) fn with_vault(self, vault: Option<Arc<dyn Vault>>) -> Self {
        Self { vault, ..self }
    }

    /// The vault.
    pub(crate) fn vault(&self) -> Option<&dyn Vault> {
        self.vault.as_deref()
    }

    /// The same function with the aliases of these issuers.
    pub(crate) fn with_issuers(self, issuers: Issuers) -> Self {
        Self { issuers, ..self }
    }

    #[cfg(test)]
    pub(crate) fn on(&self) -> &L {
        &self.on
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) async fn invoke(&self, payload: &str, lambda: &Lambda) -> Invoked {
        let (before, mut line) = (self.meter.snapshot(), self.line(lambda));
        let payload = Payload::of(payload);
        let caller = match payload.sender {
            Sender::Http => Caller::Http,
            _ if payload.fails_on_problem() => Caller::Fails,
            _ => Caller::Direct,
        };
        let answer = match self.read(&payload, &lambda.request_id).await {
            Ok(Invocation::Event(event, commands)) if !commands.is_empty() => {
                return self.react(&event, commands, lambda, line).await;
            }
            Ok(Invocation::Event(..)) => Ok(json!({ "answers": [] })),
            Ok(Invocation::Replay(replay)) => {
                line.outcome = "replay-ignored";
                let cause = format!("the rule takes events of the replay {replay}");
                line.cause = Some(logged(&cause));
                Ok(json!({ "answers": [] }))
            }
            Ok(Invocation::Command(command, surroundings)) => {
                let work = self.carry_out_noted(command, *surroundings, lambda, &mut line);
                caller.answer(work.await)
            }
            Err(problem) => {
                line.outcome = problem.kind;
                line.cause = Some(problem.detail().to_owned());
                if payload.sender == Sender::Bus {
                    Err(problem.diagnostic())
                } else {
                    caller.answer(Err(problem))
                }
            }
        };
        self.end(&mut line, &before);
        Invoked { answer, lines: vec![line] }
    }

    /// Parses a payload. The personal data of an event are opened for its reaction. Only functions of the stack may put
    /// events on the bus. The vault binds a value to its subject, not to a field: upcasts and reactions may move values. A
    /// log can also have a forgotten value.
    async fn read(&self, payload: &Payload<'_>, id: &str) -> Result<Invocation<S>, Problem> {
        let mut given = payload.read(&self.issuers, const { route_scopes::<S>() })?;
        if let (Given::Event(event), Some(vault)) = (&mut given, self.vault())
            && event.detail.replay.is_none()
            && cause::<S>(&event.detail, &event.source).is_some()
        {
            if has(&event.detail.data, Form::Marked) {
                return Err(Problem::malformed("detail.data", "no log has an open personal value"));
            }
            let opened = vault.open(vec![&mut event.detail.data]);
            opened.await.map_err(|error| unsettled::of_vault(error, id))?;
        }
        Invocation::of(given)
    }

    /// A line that begins now. By default it is for an event without commands.
    fn line(&self, lambda: &Lambda) -> Line {
        Line {
            began: self.clock.begin(),
            slice: S::NAME,
            per_slice: self.per_slice,
            function_request_id: lambda.request_id.clone(),
            cold_start: self.cold.swap(false, Ordering::Relaxed),
            command_id: None,
            correlation_id: None,
            causation_id: None,
            span: None,
            parent: None,
            repeated: false,
            principal: None,
            by: None,
            outcome: "nothing-to-do",
            attempts: 0,
            conflicts: Vec::new(),
            events: BTreeMap::new(),
            duration_ms: 0,
            usage: Usage::default(),
            cause: None,
        }
    }

    /// Adds duration and cost to `line`, whose invocation or command began at `before`.
    fn end(&self, line: &mut Line, before: &Usage) {
        line.duration_ms = line.began.lasted_ms(&self.clock);
        line.usage = self.meter.snapshot().since(before);
    }

    /// Runs one command of a caller, with its log line.
    pub(crate) async fn carry_out(
        &self,
        command: Result<S, Problem>,
        surroundings: Surroundings,
        lambda: &Lambda,
    ) -> (Result<Value, Problem>, Line) {
        let (before, mut line) = (self.meter.snapshot(), self.line(lambda));
        let command = command.map(Box::new);
        let answer = self.carry_out_noted(command, surroundings, lambda, &mut line).await;
        self.end(&mut line, &before);
        (answer, line)
    }

    /// Runs one command of a caller, and notes the outcome in `line`.
    async fn carry_out_noted(
        &self,
        command: Result<Box<S>, Problem>,
        surroundings: Surroundings,
        lambda: &Lambda,
        line: &mut Line,
    ) -> Result<Value, Problem> {
        match command {
            Ok(command) => {
                let parent = surroundings.traceparent;
                let deadline_ms = self.deadline_ms(lambda);
                let envelope = surroundings.envelope(S::NAME, &self.clock);
                let envelope = Envelope { deadline_ms, ..envelope };
                self.command(&command, &envelope, parent, lambda, line).await
            }
            Err(problem) => {
                // The caller finds the line by these ids.
                line.command_id = surroundings.command_id;
                line.correlation_id = surroundings.correlation_id;
                line.principal = surroundings.principal.map(|who| logged(&who.to_string()));
                line.outcome = problem.kind;
                line.cause = Some(problem.detail().to_owned());
                Err(problem)
            }
        }
    }

    /// Runs one command, whose span is a child of `parent`, and notes the outcome in `line`.
    async fn command(
        &self,
        command: &S,
        envelope: &Envelope,
        parent: Option<Traceparent>,
        lambda: &Lambda,
        line: &mut Line,
    ) -> Result<Value, Problem> {
        let handled = self.handle(command, envelope).await;
        line.parent = parent;
        answered(handled, envelope, &lambda.request_id, line)
    }

    /// Carries out one command before the deadline, or answers that its outcome is unknown. Otherwise Lambda would end
    /// the process without an answer.
    async fn handle(&self, command: &S, envelope: &Envelope) -> Result<Handled, HandleError> {
        let work = self.on.handle(command, envelope);
        let Some(deadline_ms) = envelope.deadline_ms else {
            return work.await;
        };
        let left = Duration::from_millis(deadline_ms.saturating_sub(self.clock.machine_ms()));
        tokio::time::timeout(left, work).await.unwrap_or_else(|late| {
            Err(StoreError::OutcomeUnknown { attempts: 1, source: late.into() }.into())
        })
    }

    /// Tries all commands of an event. If one gets no answer, or there is no time for it, the invocation fails. Then
    /// the bus delivers the event again, and keeps it after the last attempt. The commands' ids prevent that a command
    /// takes effect twice.
    async fn react(
        &self,
        event: &TopicEvent,
        commands: Vec<(String, S)>,
        lambda: &Lambda,
        first: Line,
    ) -> Invoked {
        let parent = Traceparent::of_event(&event.meta);
        let (mut answers, mut failed) = (Vec::with_capacity(commands.len()), None);
        let (mut lines, mut first) = (Vec::with_capacity(commands.len()), Some(first));
        let deadline_ms = self.deadline_ms(lambda);
        for (key, command) in commands {
            if first.is_none()
                && deadline_ms.is_some_and(|until_ms| !has_time(self.clock.machine_ms(), until_ms))
            {
                failed = failed.or_else(|| Some(no_time()));
                break;
            }
            let before = self.meter.snapshot();
            let mut line = first.take().unwrap_or_else(|| self.line(lambda));
            let envelope = Surroundings::of_event(event, S::NAME, key, &self.clock);
            let envelope = Envelope { deadline_ms, ..envelope };
            match self.command(&command, &envelope, parent, lambda, &mut line).await {
                Ok(answer) => answers.push(answer),
                Err(problem) if problem.settles_reaction() => answers.push(problem.document()),
                Err(problem) => failed = Some(problem),
            }
            self.end(&mut line, &before);
            lines.push(line);
        }
        let answer = match failed {
            None => Ok(json!({ "answers": answers })),
            Some(problem) => Err(problem.diagnostic()),
        };
        Invoked { answer, lines }
    }

    /// The deadline for the answers of an invocation that begins now.
    fn deadline_ms(&self, lambda: &Lambda) -> Option<u64> {
        // Emulators of the runtime send deadlines that are long past, which do not count.
        let deadline = Some(lambda.deadline).filter(|deadline| *deadline > self.clock.machine_ms());
        deadline.map(|deadline| deadline.saturating_sub(ANSWER_MS))
    }
}

/// The problem of an event's command that did not begin.
fn no_time() -> Problem {
    let detail = "the time was over before the last command of the event; deliver it again";
    Problem::new(503, "unavailable", "There was no time left", detail.to_owned())
}

/// The answer of a command, noted in `line`. It has no type parameter, so it is compiled once, and not for each slice.
fn answered(
    handled: Result<Handled, HandleError>,
    envelope: &Envelope,
    request_id: &str,
    line: &mut Line,
) -> Result<Value, Problem> {
    let text = |key| envelope.metadata.text(key).map(logged);
    line.command_id = text("commandId");
    line.correlation_id = text("correlationId");
    // Without a cause, it is the command's own id.
    line.causation_id = text("causationId").filter(|id| Some(id) != line.command_id.as_ref());
    line.principal = text(Metadata::PRINCIPAL);
    line.by = text(Metadata::BY);
    let span = Traceparent::of_event(&envelope.metadata);
    line.span = match left_nothing(&handled) {
        true => span.map(|span| span.of_try(request_id)),
        false => span,
    };
    match handled {
        Ok(handled) => {
            line.attempts = handled.attempts;
            line.repeated = handled.repeated;
            line.met(&handled.conflicts);
            if !handled.repeated {
                let (Outcome::Accepted(events) | Outcome::Rejected { events, .. }) =
                    &handled.outcome;
                line.wrote(events);
            }
            // Only the code: the whole rejection may have personal data.
            if let Outcome::Rejected { rejected, .. } = &handled.outcome {
                line.cause = rejected.rejection["code"].as_str().map(logged);
            }
            let answer = answer::of_handled(handled);
            line.outcome = answer.as_ref().map_or_else(|problem| problem.kind, |_| "accepted");
            answer
        }
        Err(error) => {
            let problem = unsettled::problem(&error, request_id);
            line.outcome = problem.kind;
            line.attempts = unsettled::attempts(&error);
            line.met(&unsettled::conflicts(&error));
            line.cause = Some(chain(&error));
            Err(problem)
        }
    }
}

/// Whether a run of a command wrote no event, and none under its key was there before. A run with an unknown outcome
/// may have written some.
fn left_nothing(handled: &Result<Handled, HandleError>) -> bool {
    match handled {
        Ok(Handled { repeated, outcome, .. }) => {
            let (Outcome::Accepted(events) | Outcome::Rejected { events, .. }) = outcome;
            !repeated && events.is_empty()
        }
        Err(HandleError::Log(LogError::Store(error))) => {
            !matches!(error, StoreError::OutcomeUnknown { .. })
        }
        Err(_) => true,
    }
}

fn logged(text: &str) -> String {
    bounded(text, LOGGED_BYTES_MAX)
}

/// The caller who waits for an answer.
enum Caller {
    Http,
    Direct,
    /// A direct caller who wants a problem as an error, such as a state machine.
    Fails,
}

impl Caller {
    fn answer(&self, answer: Result<Value, Problem>) -> Result<Value, Diagnostic> {
        match self {
            Self::Http => Ok(json!(http(answer))),
            Self::Direct => Ok(answer.unwrap_or_else(Problem::document)),
            Self::Fails => answer.map_err(Problem::error),
        }
    }
}
