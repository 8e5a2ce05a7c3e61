//! Personal data of a document: sealed in its events and in its state, and forgotten with the subject.

use std::num::NonZeroUsize;
use std::sync::Arc;

use ringfence_aws::Clock;
use ringfence_core::kit::MemoryVault;
use ringfence_core::{
    Consistency, Envelope, HandleError, KEPT_OPEN_MS, LogError, OnLog, Outcome, Personal,
    VaultError, prelude::*,
};
use ringfence_document_log::{
    AccessStrategy, Cache, Category, Document, DocumentLog, Documents, Load, MemoryStore, Snapshot,
    StoredEvent, kit,
};
use serde_json::{Value, json};

use crate::stack::NOW_MS;

#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 2)]
#[upcast(1 = name_of_full_name)]
#[write(1 = full_name_of_name)]
struct PatientNamed {
    #[tag(partition)]
    #[subject]
    patient_id: String,
    name: Personal<String>,
}

fn name_of_full_name(mut data: Fields) -> Result<Fields, FieldError> {
    data.rename("fullName", "name")?;
    Ok(data)
}

/// It would take an open value out of its mark.
fn full_name_of_name(mut data: Fields) -> Result<Fields, FieldError> {
    let name: Value = data.remove("name")?;
    data.set("fullName", name.get("$personal").unwrap_or(&name))?;
    Ok(data)
}

#[derive(Clone, Debug, PartialEq, Command)]
struct NamePatient {
    #[tag(partition)]
    #[subject]
    patient_id: String,
    name: Personal<String>,
}

#[derive(Reads)]
enum Consumed {
    PatientNamed { name: Personal<String> },
}

#[ringfence::value]
#[derive(Clone, Debug, Default)]
struct Patient(Vec<Personal<String>>);

impl State for Patient {
    type Reads = Consumed;

    fn evolve(mut self, Consumed::PatientNamed { name }: Consumed) -> Self {
        self.0.push(name);
        self
    }
}

impl Document for Patient {
    const ACCESS: AccessStrategy<Self> = AccessStrategy::Snapshot(Snapshot::named("Patient"));
}

struct Patients;

impl Context for Patients {
    const NAME: &'static str = "patients";
    type Log = Documents<Patient>;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::of_streams(Self::NAME, [PatientNamed::SCHEMA])
    }
}

#[derive(Debug, PartialEq, serde::Serialize, thiserror::Error)]
#[error("the patient has these names already: {0}")]
struct Named(usize);

impl Slice for NamePatient {
    const NAME: &'static str = "name-patient";
    type Context = Patients;
    type State = Patient;
    type Writes = PatientNamed;
    type Rejection = Named;

    /// Rejects a third name, so that an answer shows what was read.
    fn decide(
        &self,
        Patient(names): &Patient,
        _: &CommandContext,
    ) -> Result<Vec<PatientNamed>, Named> {
        match names.len() {
            0 | 1 => Ok(vec![PatientNamed {
                patient_id: self.patient_id.clone(),
                name: self.name.clone(),
            }]),
            _ => Err(Named(names.iter().filter(|name| !name.is_forgotten()).count())),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        let named = || PatientNamed { patient_id: "p1".to_owned(), name: "Ada".to_owned().into() };
        vec![given(events![named()]).when(name()).then([named()])]
    }
}

fn name() -> NamePatient {
    NamePatient { patient_id: "p1".to_owned(), name: "Ada".to_owned().into() }
}

#[test]
fn cases_of_documents_hold_with_sealed_values() {
    kit::check_in_memory::<NamePatient, Patient>();
}

#[tokio::test]
async fn a_document_stores_no_personal_value_and_forgets_it() {
    let (store, clock) = (MemoryStore::default(), Clock::fixed(NOW_MS));
    let vault = Arc::<MemoryVault>::default();
    let category = |cache| {
        let log = DocumentLog::new(store.clone(), clock.clone());
        let category = Category::of::<NamePatient>(log, cache).expect("a slice of the log");
        category.with_vault(Some(vault.clone()))
    };
    let (cold, warm) = (category(Cache::none()), category(Cache::of(NonZeroUsize::MIN)));
    let envelope = Envelope::default();
    let run = async |on: &Category<_, _>| on.handle(&name(), &envelope).await;
    let keyed = Envelope { idempotency_key: Some("k".to_owned()), ..Envelope::default() };
    for repeated in [false, true] {
        let handled = cold.handle(&name(), &keyed).await.expect("it is settled");
        assert_eq!(handled.repeated, repeated);
    }
    run(&cold).await.expect("it is settled");
    let stream = cold.stream("p1").expect("a name");
    let tip = cold.log().tip(&stream, Consistency::Strong, &envelope).await.expect("an answer");
    let tip = tip.expect("a Tip");
    let bodies = tip.events.iter().map(|StoredEvent { data, .. }| data);
    let bodies = bodies.chain(tip.unfolds.iter().map(|unfold| &unfold.data));
    let bodies: Vec<_> = bodies.map(|body| body.json().expect("it is JSON")).collect();
    assert_eq!(bodies.len(), 3);
    for body in bodies {
        let text = format!("{body:?}");
        assert!(text.contains("$sealed") && !text.contains("Ada"), "{text}");
    }
    // A state of new events is open too.
    let log = DocumentLog::new(MemoryStore::default(), clock.clone());
    let access = AccessStrategy::RollingState(Snapshot::named("Patient"));
    let rolling = Category::new::<Patients>(log, access, Cache::of(NonZeroUsize::MIN));
    let rolling = rolling.expect("documents").with_vault(Some(vault.clone()));
    run(&rolling).await.expect("it is settled");
    // The third is rejected, and says how many names it could read.
    let known = async |on: &Category<_, _>| {
        let Outcome::Rejected { rejected, .. } = run(on).await.expect("an answer").outcome else {
            panic!("there are two names");
        };
        rejected.rejection
    };
    assert_eq!(known(&warm).await, json!(2));
    vault.forget_all();
    assert_eq!((known(&cold).await, known(&warm).await), (json!(0), json!(2)));
    // A command of the stack loses its values.
    let mut of_stack = envelope.clone();
    of_stack.context.is_of_stack = true;
    rolling.handle(&name(), &of_stack).await.expect("it is settled");
    // Also a clock that was set back ends it.
    clock.set(NOW_MS - 1);
    let count = |Patient(names): &Patient| names.iter().filter(|name| !name.is_forgotten()).count();
    let known_names = rolling.query("p1", Load::Cached, &envelope, count).await;
    assert_eq!(known_names.expect("a state").0, 0);
    clock.set(NOW_MS + KEPT_OPEN_MS + 1);
    assert_eq!(known(&warm).await, json!(0), "a warm program forgets too");
    let repeat = cold.handle(&name(), &keyed).await;
    let forgotten = HandleError::Log(LogError::Vault(VaultError::Forgotten("p1".to_owned())));
    assert_eq!(repeat.expect_err("forgotten").to_string(), forgotten.to_string());
}
