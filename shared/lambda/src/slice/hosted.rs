//! A slice in the process of another function.

use std::cell::RefCell;

use crate::{ApiGatewayV2httpRequest, Issuers, LogLine, Problem};
use futures::future::{FutureExt, LocalBoxFuture, TryFutureExt};
use lambda_runtime::{Context as Lambda, Diagnostic};
use ringfence_core::personal::{Form, has};
use ringfence_core::{
    BoundaryId, Context, HandleError, LogError, LogKind, LogName, LogOf, OnLog, Principal,
    SequencedEvent, Slice, TopicEvent, VaultError, record_of, route_scopes,
};
use ringfence_log::{BoxError, Log, StackLogs};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::slice::function::{ANSWER_MS, AnyFunction, Function, Invoked};
use crate::slice::invocation::{Surroundings, of_caller, of_request};
use crate::slice::json::typed;
use crate::slice::telemetry::Line;
use crate::slice::unsettled;

/// Each instance keeps this many warm decisions.
const KEPT: usize = 10;

/// A slice that answers like its function, with the same log lines, for any number of events and commands at a time.
/// Each of them has an instance, because an instance counts what one command costs.
pub struct Hosted {
    /// Opens a further instance.
    open: Box<dyn Fn() -> Result<Box<dyn AnyHosted>, BoxError>>,
    /// The instances that have nothing to do, with the names for which they were used last.
    idle: RefCell<Vec<(String, Box<dyn AnyHosted>)>>,
}

/// A queued command, with the data that its caller sent along with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedCommand {
    /// The slice, as `<context>/<slice>`.
    pub slice: String,
    /// The id of the command, which is its idempotency key.
    pub command_id: String,
    /// Commands of one group are carried out in their order. They concern the same partition.
    pub group: String,
    /// The command.
    pub command: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    /// The caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effective_at: Option<String>,
    /// The hash of a command with personal data, whose sealed form differs each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl Hosted {
    /// The slice on its log.
    ///
    /// # Errors
    /// As [`StackLogs::open`].
    pub fn open<S: Slice<Context: Context<Log: Log<S>>>>(
        logs: &StackLogs,
    ) -> Result<Self, BoxError> {
        let open = |logs: &StackLogs| -> Result<_, BoxError> {
            let (on, meter) = logs.open::<S>(KEPT)?;
            let vault = logs.vault.as_ref().map(|vault| vault.on(&meter));
            let function = Function::<S, _>::new(on, logs.clock.clone(), meter);
            Ok(function.with_vault(vault))
        };
        let idle = RefCell::new(vec![(String::new(), Box::new(open(logs)?) as _)]);
        let logs = logs.clone();
        Ok(Self { open: Box::new(move || Ok(Box::new(open(&logs)?.warm()))), idle })
    }

    /// An instance, if possible the one that was used for the same name last: it may know what is read.
    fn instance(&self, name: &str) -> Instance<'_> {
        let mut idle = self.idle.borrow_mut();
        let same = idle.iter().position(|(last, _)| last == name);
        let found = same.map(|n| idle.remove(n)).or_else(|| idle.pop());
        let open = || (self.open)().expect("the first instance is open");
        let instance = found.map_or_else(open, |(_, instance)| instance);
        Instance { of: self, instance: Some((name.to_owned(), instance)) }
    }

    /// Carries out the commands of the event in its lane.
    ///
    /// # Errors
    /// A command has no answer that settles it.
    pub async fn react(&self, event: &SequencedEvent, lane: &BoundaryId) -> Result<(), Diagnostic> {
        let entry = json!({
            "detail-type": event.event_type,
            "source": event.context,
            "detail": TopicEvent::new(event.clone()),
        });
        let lambda = Lambda::default();
        let instance = self.instance(lane.as_str());
        let Invoked { answer, lines } = instance.get().call(&entry.to_string(), &lambda).await;
        lines.iter().for_each(|line| line.log().write());
        answer.map(drop)
    }

    /// Parses a request of the HTTP API like the slice's function with these issuers. Returns the command for a queue,
    /// and carries out nothing.
    ///
    /// # Errors
    /// The caller's answer, if the request is refused.
    pub async fn take(
        &self,
        request: ApiGatewayV2httpRequest,
        issuers: &Issuers,
        request_id: &str,
    ) -> Result<QueuedCommand, Problem> {
        // It teaches an instance nothing, so an idle one keeps its name.
        let name = self.idle.borrow().first().map(|(name, _)| name.clone()).unwrap_or_default();
        self.instance(&name).get().take(request, issuers, request_id).await
    }

    /// Carries out a command before a time in milliseconds since 1970 by the machine's clock. Returns the answer of the
    /// slice's function, or its problem, and the line of the log.
    pub async fn run(
        &self,
        queued: &QueuedCommand,
        until_ms: u64,
        request_id: &str,
    ) -> (Result<Value, Problem>, LogLine) {
        let mut lambda = Lambda::default();
        // The caller has reserved the time for the answer.
        lambda.deadline = until_ms.saturating_add(ANSWER_MS);
        request_id.clone_into(&mut lambda.request_id);
        let instance = self.instance(&queued.group);
        let (answer, line) = instance.get().run(queued, &lambda).await;
        (answer, line.log())
    }
}

/// An instance while it is used.
struct Instance<'a> {
    of: &'a Hosted,
    /// Present until the end.
    instance: Option<(String, Box<dyn AnyHosted>)>,
}

impl Instance<'_> {
    fn get(&self) -> &dyn AnyHosted {
        &*self.instance.as_ref().expect("it is in use").1
    }
}

impl Drop for Instance<'_> {
    fn drop(&mut self) {
        self.of.idle.borrow_mut().extend(self.instance.take());
    }
}

/// A function of any slice, for queued commands.
pub(crate) trait AnyHosted: AnyFunction {
    fn take<'a>(
        &'a self,
        request: ApiGatewayV2httpRequest,
        issuers: &'a Issuers,
        request_id: &'a str,
    ) -> LocalBoxFuture<'a, Result<QueuedCommand, Problem>>;

    fn run<'a>(
        &'a self,
        queued: &'a QueuedCommand,
        lambda: &'a Lambda,
    ) -> LocalBoxFuture<'a, (Result<Value, Problem>, Line)>;
}

impl<S: Slice, L: OnLog<S>> AnyHosted for Function<S, L> {
    fn take<'a>(
        &'a self,
        request: ApiGatewayV2httpRequest,
        issuers: &'a Issuers,
        request_id: &'a str,
    ) -> LocalBoxFuture<'a, Result<QueuedCommand, Problem>> {
        Box::pin(async move {
            let scopes = const { route_scopes::<S>() };
            let (command, surroundings) = of_request(request, issuers, scopes)?;
            let command = of_caller::<S>(command?)?;
            let mut queued = queued(&*command, surroundings, || self.clock().uuid().to_string());
            let sealed = self.seal(&*command, &mut queued).await;
            sealed.map_err(|error| unsettled::problem(&error, request_id))?;
            Ok(queued)
        })
    }

    fn run<'a>(
        &'a self,
        queued: &'a QueuedCommand,
        lambda: &'a Lambda,
    ) -> LocalBoxFuture<'a, (Result<Value, Problem>, Line)> {
        Box::pin(async move {
            let mut command = queued.command.clone();
            let opened = match self.vault() {
                None => Ok(()),
                Some(vault) => vault.open(vec![&mut command]).await,
            };
            let command = match opened {
                // Its caller would be refused now. A reaction is not: its event has happened, and others wait for it.
                Ok(()) if has(&command, Form::Forgotten) => Err(Problem::subject_forgotten()),
                Ok(()) => typed::<S>("command", command),
                Err(error) => Err(unsettled::of_vault(error, &lambda.request_id)),
            };
            self.carry_out(command, surroundings(queued), lambda).await
        })
    }
}

impl<S: Slice, L: OnLog<S>> Function<S, L> {
    /// Seals the personal data of a queued command, and keeps its hash.
    async fn seal(&self, command: &S, queued: &mut QueuedCommand) -> Result<(), HandleError> {
        if !has(&queued.command, Form::Marked) {
            return Ok(());
        }
        let missing = || VaultError::Missing(format!("a command of {}", S::NAME));
        let vault = self.vault().ok_or_else(missing).map_err(LogError::from)?;
        let fingerprint = |subject: String, text: String| {
            let mark = async move { vault.fingerprint(&subject, &text).await.map(Some) };
            mark.map_err(|error| HandleError::from(LogError::from(error))).boxed()
        };
        let record = record_of(S::NAME, &queued.command_id, command, fingerprint).await?;
        queued.sha256 = Some(record.sha256);
        command.subjects().name(&mut queued.command)?;
        vault.seal(vec![&mut queued.command]).await.map_err(LogError::from)?;
        Ok(())
    }
}

/// The command in the form of a queue.
fn queued<S: Slice>(
    command: &S,
    surroundings: Surroundings,
    id: impl FnOnce() -> String,
) -> QueuedCommand {
    let Surroundings { command_id, correlation_id, traceparent, .. } = surroundings;
    let Surroundings { principal, effective_at, .. } = surroundings;
    let command_id = command_id.unwrap_or_else(id);
    QueuedCommand {
        slice: format!("{}/{}", <S::Context as Context>::NAME, S::NAME),
        group: group(command).unwrap_or_else(|| command_id.clone()),
        command: serde_json::to_value(command).expect("commands are maps with text keys"),
        command_id,
        correlation_id,
        traceparent: traceparent.map(|span| span.to_string()),
        scopes: principal.iter().flat_map(|principal| principal.scopes.clone()).collect(),
        principal: principal.map(|principal| principal.to_string()),
        effective_at,
        sha256: None,
    }
}

fn surroundings(queued: &QueuedCommand) -> Surroundings {
    let principal = queued.principal.as_deref().map(Principal::from);
    Surroundings {
        command_id: Some(queued.command_id.clone()),
        correlation_id: queued.correlation_id.clone(),
        causation_id: None,
        traceparent: queued.traceparent.as_ref().and_then(|text| text.parse().ok()),
        principal: principal.map(|principal| principal.with_scopes(queued.scopes.clone())),
        by: None,
        effective_at: queued.effective_at.clone(),
    }
}

/// The value of the command's first partition tag. Commands about the same partition have the same group, in every
/// slice. A command without such a tag has no group.
fn group<S: Slice>(command: &S) -> Option<String> {
    let schema = command.shape().iter().find(|tag| tag.partition)?;
    let tag = command.tags().into_iter().find(|tag| tag.key == schema.key)?;
    Some(match LogOf::<S>::KIND {
        LogKind::Dcb => format!("{}:{}", tag.key, tag.value),
        LogKind::Aggregates | LogKind::Documents => {
            format!("{}/{}", <S::Context as Context>::NAME, tag.value)
        }
    })
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::future::ready;

    use super::*;

    struct Fake;

    impl AnyFunction for Fake {
        fn call<'a>(&'a self, _: &'a str, _: &'a Lambda) -> LocalBoxFuture<'a, Invoked> {
            unreachable!("nothing is carried out")
        }
    }

    impl AnyHosted for Fake {
        fn take<'a>(
            &'a self,
            _: ApiGatewayV2httpRequest,
            _: &'a Issuers,
            _: &'a str,
        ) -> LocalBoxFuture<'a, Result<QueuedCommand, Problem>> {
            Box::pin(ready(Err(Problem::newer_version())))
        }

        fn run<'a>(
            &'a self,
            _: &'a QueuedCommand,
            _: &'a Lambda,
        ) -> LocalBoxFuture<'a, (Result<Value, Problem>, Line)> {
            unreachable!("nothing is carried out")
        }
    }

    #[test]
    fn each_instance_keeps_its_name_when_a_command_is_taken() {
        let fake = |name: &str| (name.to_owned(), Box::new(Fake) as Box<dyn AnyHosted>);
        let idle = RefCell::new(["a", "b"].map(fake).into());
        let hosted = Hosted { open: Box::new(|| Ok(Box::new(Fake))), idle };
        let issuers = Issuers::default();
        let taken = hosted.take(ApiGatewayV2httpRequest::default(), &issuers, "r");
        assert!(block_on(taken).is_err());
        let mut names: Vec<_> = hosted.idle.take().into_iter().map(|(name, _)| name).collect();
        names.sort();
        assert_eq!(names, ["a", "b"]);
    }
}
