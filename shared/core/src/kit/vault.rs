//! A vault for cases, and the canary: a marked text in each personal value, which no store and no answer may show.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};

use super::same::fail;
use crate::{
    Catalog, Consistency, EventLog, HandleError, Handled, LogError, MemoryLog, OnEvents, OnLog,
    Reads, ReadsOf, SequencedEvent, Slice, State, Tag, Vault, VaultError, Vaulted, chain,
    decide::case::Case,
    decide::record::refuses,
    decide::shapes::{Declared, plan},
    model::command::sha256,
    personal::{FORGOTTEN, Form, MARKED, OF, SEALED, form, subject, values},
};

/// The text of the canary.
pub const CANARY: &str = "canary-7f3a";

/// A vault without keys. A sealed value is only scrambled, so that nobody takes it for the value.
#[derive(Debug, Default)]
pub struct MemoryVault {
    forgotten: AtomicBool,
}

impl MemoryVault {
    /// Forgets all subjects.
    pub fn forget_all(&self) {
        self.forgotten.store(true, Ordering::Relaxed);
    }

    fn sealed(&self, value: &mut Value) -> Result<(), VaultError> {
        let of = subject(value).expect("a marked value has a subject").to_owned();
        if self.forgotten.load(Ordering::Relaxed) {
            return Err(VaultError::Forgotten(of));
        }
        let text = value[MARKED].to_string();
        let hex: String = text.bytes().map(|byte| format!("{:02x}", !byte)).collect();
        *value = json!({ SEALED: hex, OF: of, "k": 1 });
        Ok(())
    }

    fn opened(&self, value: &mut Value) -> Result<(), VaultError> {
        let of = subject(value).expect("a sealed value has a subject").to_owned();
        if self.forgotten.load(Ordering::Relaxed) {
            *value = json!({ FORGOTTEN: true, OF: of });
            return Ok(());
        }
        let hex = value[SEALED].as_str().unwrap_or_default();
        let bytes = (0..hex.len() / 2).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16));
        let bytes: Result<Vec<u8>, _> = bytes.map(|byte| byte.map(|byte| !byte)).collect();
        let text = bytes.ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let text =
            text.ok_or(VaultError::Damaged { subject: of.clone(), why: "no hexadecimal" })?;
        *value = json!({ MARKED: text, OF: of });
        Ok(())
    }
}

fn each(
    payloads: Vec<&mut Value>,
    of: Form,
    change: impl Fn(&mut Value) -> Result<(), VaultError>,
) -> BoxFuture<'static, Result<(), VaultError>> {
    let found = payloads.into_iter().flat_map(|payload| values(payload, of));
    Box::pin(ready(found.map(change).fold(Ok(()), Result::and)))
}

impl Vault for MemoryVault {
    fn seal<'a>(&'a self, payloads: Vec<&'a mut Value>) -> BoxFuture<'a, Result<(), VaultError>> {
        each(payloads, Form::Marked, |value| self.sealed(value))
    }

    fn open<'a>(&'a self, payloads: Vec<&'a mut Value>) -> BoxFuture<'a, Result<(), VaultError>> {
        each(payloads, Form::Sealed, |value| self.opened(value))
    }

    fn fingerprint<'a>(
        &'a self,
        subject: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<String, VaultError>> {
        let print = match self.forgotten.load(Ordering::Relaxed) {
            true => Err(VaultError::Forgotten(subject.to_owned())),
            false => Ok(sha256(&format!("{subject} {text}"))),
        };
        Box::pin(ready(print))
    }

    fn blind<'a>(&'a self, tags: &'a [Tag]) -> BoxFuture<'a, Result<Vec<Vec<String>>, VaultError>> {
        Box::pin(ready(Ok(vec![tags.iter().map(blinded).collect()])))
    }

    fn dry(self: Arc<Self>) -> Arc<dyn Vault> {
        self
    }
}

fn blinded(tag: &Tag) -> String {
    format!("b1.{}", &sha256(&format!("{}\0{}", tag.key, tag.value))[..26])
}

/// The log in memory with this vault.
pub(super) fn vaulted<S: Slice>(log: MemoryLog, vault: &Arc<MemoryVault>) -> Vaulted<MemoryLog> {
    Vaulted::new::<ReadsOf<S>>(log, vault.clone())
}

/// The events of the log, open.
pub(super) fn opened(log: &Vaulted<MemoryLog>) -> Vec<SequencedEvent> {
    let vault = MemoryVault::default();
    let mut events = log.log().events();
    for value in events.iter_mut().flat_map(|event| values(&mut event.data, Form::Sealed)) {
        vault.opened(value).unwrap_or_else(|error| fail("a sealed value", error));
    }
    events
}

/// The tags of a command as the log has them.
pub(super) fn tags<S: Slice>(command: &S) -> Vec<Tag> {
    let is_blind = |tag: &Tag| {
        !tag.value.is_empty() && command.shape().iter().any(|of| of.blind && of.key == tag.key)
    };
    let mut tags = command.tags();
    tags.iter_mut().filter(|tag| is_blind(tag)).for_each(|tag| tag.value = blinded(tag));
    tags
}

impl<S: Slice> Case<S> {
    /// The number of the personal values in the case's facts and its command.
    #[must_use]
    pub fn personal_values(&self) -> usize {
        let command = serde_json::to_value(&self.command).expect("a command has JSON");
        let facts = self.given.iter().map(|fact| fact.event.data.clone());
        facts.chain([command]).map(|mut json| values(&mut json, Form::Marked).len()).sum()
    }

    /// The case with the canary in each text of its personal values; `None` if it has no such values, or its command
    /// can't have the canary.
    #[must_use]
    pub fn with_canary(&self) -> Option<Self> {
        if self.personal_values() == 0 {
            return None;
        }
        let given = self.given.iter().cloned().map(|mut fact| {
            values(&mut fact.event.data, Form::Marked).into_iter().for_each(mark);
            fact
        });
        let mut command = serde_json::to_value(&self.command).expect("a command has JSON");
        values(&mut command, Form::Marked).into_iter().for_each(mark);
        // A value with a shape can't be the canary.
        let command = serde_json::from_value(command).ok()?;
        let Self { context, then, at, .. } = self;
        let (context, then) = (context.clone(), then.clone());
        Some(Self { given: given.collect(), command, context, then, at: *at })
    }

    /// Checks the case's personal data: with the canary in each value, neither the log nor the answer nor a
    /// snapshot shows it; and with all subjects forgotten, the command gets an answer.
    pub(super) async fn check_personal(&self, catalog: &Catalog) {
        if self.personal_values() == 0 {
            return;
        }
        if let Some(case) = self.with_canary() {
            case.check_canary(catalog).await;
        }
        let vault = Arc::new(MemoryVault::default());
        let on = OnEvents::<S, _>::new(
            vaulted::<S>(MemoryLog::new(catalog.clone()), &vault),
            catalog.clone(),
            0,
        );
        self.prepare(&on, &|_| {}).await;
        vault.forget_all();
        match on.handle(&self.command, &self.envelope()).await {
            Ok(_) => {}
            Err(HandleError::Log(LogError::Vault(VaultError::Forgotten(of))))
                if refuses(&self.command, &self.context, &of) => {}
            Err(error) => self.fail("with all subjects forgotten", error),
        }
    }

    async fn check_canary(&self, catalog: &Catalog) {
        let vault = Arc::new(MemoryVault::default());
        let log = vaulted::<S>(MemoryLog::new(catalog.clone()), &vault);
        let on = OnEvents::<S, _>::new(log, catalog.clone(), 0);
        self.prepare(&on, &|_| {}).await;
        let kept = self.snapshot(on.log(), catalog).await;
        let handled = on.handle(&self.command, &self.envelope()).await;
        if matches!(handled, Err(HandleError::Log(LogError::Undecodable { .. }))) {
            return;
        }
        let answer = match handled {
            Ok(Handled { outcome, .. }) => format!("{outcome:?}"),
            Err(error) => chain(&error),
        };
        let stored = on.log().log().events();
        let stored = stored.iter().map(|event| format!("{event:?}")).collect();
        let places = [("log", stored), ("answer", answer), ("snapshot", kept.unwrap_or_default())];
        for (place, text) in places {
            let is_shown = text.contains(CANARY);
            assert!(!is_shown, "{}: the {place} shows a personal value: {text}", self.at);
        }
    }

    /// The JSON of the state before the command, as a snapshot would have it, without the values that are sealed.
    async fn snapshot(&self, log: &dyn EventLog, catalog: &Catalog) -> Option<String> {
        let snapshots = S::State::SNAPSHOTS?;
        let (declared, shape) = (Declared::of::<S>(), self.command.shape());
        let (_, plan) = plan(declared, shape, vec![tags(&self.command)], catalog).ok()?;
        let envelope = self.envelope();
        let read = log.read_with_seen(&plan, Consistency::Strong, &envelope).await;
        let mut state = S::State::default();
        for event in read.ok()?.0.iter().filter(|event| plan.matches(event)) {
            state = state.evolve(ReadsOf::<S>::decode(&catalog.current(event).ok()?).ok()?);
        }
        let mut json = snapshots.json(&state).ok()?;
        values(&mut json, Form::Marked).into_iter().for_each(|value| *value = Value::Null);
        Some(json.to_string())
    }
}

/// Puts the canary in the place of a text. An address stays one.
fn mark(value: &mut Value) {
    assert_eq!(form(value), Form::Marked);
    if let Value::String(text) = &mut value[MARKED] {
        let of = if text.contains('@') { "@example.org" } else { "" };
        *text = format!("{CANARY}{of}");
    }
}
