//! Runs the cases of every slice on DynamoDB. The tests of each context run them in memory.

use std::error::Error;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use ringfence_aws::wire::Exchange;
use ringfence_core::kit::{BEGIN_MS, Case, catalog, fail};
use ringfence_core::{
    Access, Context, Due, Envelope, LogKind, LogName, LogOf, OnLog, Plan, Slice, is_personal,
};
use ringfence_local::template::Template;
use ringfence_log::{InTable, Log};
use ringfence_services::queue::{AnswersError, CommandAnswer, CommandAnswers};
use ringfence_stack::{MemberList, Members, Stack, Visitor};
use ringfence_template::written::table_of;
use serde_json::{Value, json};

use crate::Dynamo;
use crate::canary::check_personal;
use crate::deadlines::requests_of_sweeps;
use crate::dynamo::tables;
use crate::lanes::{IN_ORDER, requests_of_lanes};
use crate::prepared::{open, prepared, tips_of};
use crate::readers::VIEWS;
use crate::requests::{Asked, check_requests, grants};
use crate::template::{binary, check_none};
use crate::written::{self, Current, differences_of_template};

/// The requests of a slice in their order: operations and bodies. Tables are named by their logical ids.
type Requests = Vec<(String, Value)>;

/// Runs the cases of every slice that `M` lists on an embedded DynamoDB, and compares their requests with the roles in
/// `template.yaml`. Panics with the place of a failed case, with each request that a role does not allow, and with
/// every permission that no case needs. Under `UPDATE=1` it writes the needed permissions into the template.
pub async fn check_cases<M: Members>() {
    let current = Current::of::<M>();
    let (stack, template, asked) =
        (&current.stack, current.template(), asked_of::<M>(&current).await);
    if written::is_asked() {
        let grants = grants(&template, &tables(&template), &asked);
        let grants = grants.unwrap_or_else(|error| fail("template.yaml", error));
        check_none(&differences_of_template(stack, Some(&grants)));
    }
    check_requests(Current::of::<M>().template(), &asked);
}

/// The requests of the functions that carry out commands.
pub(crate) async fn asked_of<M: Members>(current: &Current) -> Vec<Asked> {
    let (stack, template, model) = (&current.stack, current.template(), current.model());
    let mut cases = Cases { template: &template, on_dynamo: Vec::new(), dues: Vec::new() };
    MemberList::walk::<M>(&mut cases);
    let mut asked: Vec<Asked> = Vec::new();
    // The function that feeds ordered automations sends all their requests, and the requests of every reader of lanes.
    let mut in_order = Requests::new();
    for (slice, requests) in cases.on_dynamo {
        let mut requests = requests.await;
        requests.extend(announcements(&requests));
        if is_ordered(stack, slice) {
            in_order.extend(requests.iter().cloned());
            let lanes = requests_of_lanes(&template, slice, false, true).await.into_iter();
            in_order.extend(lanes.map(|asked| (asked.operation, asked.request)));
        }
        asked.push((slice.to_owned(), requests));
    }
    // fire-deadlines carries out the commands of all dues.
    if let Some(binary) = binary(&model, "FireDeadlines") {
        let is_due = |(slice, _): &&(String, _)| cases.dues.contains(&&**slice);
        let of_dues = asked.iter().filter(is_due).flat_map(|(_, requests)| requests.clone());
        let sweeps = requests_of_sweeps(&template).await.into_iter();
        let sweeps = sweeps.map(|Exchange { operation, request, .. }| (operation, request));
        let all = of_dues.chain(sweeps).collect();
        asked.push((binary.to_owned(), all));
    }
    if let Some(binary) = binary(&model, IN_ORDER) {
        asked.push((binary.to_owned(), in_order));
    }
    // run-commands carries out the commands of all slices.
    if let Some(binary) = binary(&model, "RunCommands") {
        let is_slice = |(name, _): &&Asked| stack.slices().any(|(_, slice)| slice.name == name);
        let of_slices = asked.iter().filter(is_slice).flat_map(|(_, requests)| requests.clone());
        let all = of_slices.chain(requests_of_answers(&template).await).collect();
        asked.push((binary.to_owned(), all));
    }
    asked
}

/// The requests of announced appends. Another build may declare copies of any fence that these requests update, so an
/// append to it must be able to announce itself. A check of a copy levels all of them after a writer has died.
fn announcements(requests: &Requests) -> Requests {
    let actions = requests.iter().filter_map(|(_, request)| request["TransactItems"].as_array());
    let is_fence = |action: &&Value| {
        action["Key"]["id"]["S"].as_str().is_some_and(|id| id.starts_with("fence#"))
    };
    let fence = |action: &Value| {
        let check = action.get("ConditionCheck");
        let copy = check.filter(|check| check["Key"]["position"]["N"] != "0");
        action.get("Update").or(copy).filter(is_fence).cloned()
    };
    let announced = actions.flatten().filter_map(fence).flat_map(|fence| {
        let (table, key) = (&fence["TableName"], &fence["Key"]);
        let of_key = json!({ "TableName": table, "Key": key });
        let put = json!({ "TableName": table, "Item": key });
        [("GetItem", of_key.clone()), ("UpdateItem", of_key), ("PutItem", put)]
    });
    announced.map(|(operation, request)| (operation.to_owned(), request)).collect()
}

fn is_ordered(stack: &Stack, name: &str) -> bool {
    stack.slices().any(|(_, slice)| slice.name == name && slice.order.is_some())
}

/// The requests of run-commands for the answers of commands.
async fn requests_of_answers(template: &Template) -> Requests {
    let dynamo = Dynamo::with(template, &[VIEWS]);
    let queued = json!({ "slice": "a/b", "commandId": "c", "group": "d", "command": {} });
    let queued = serde_json::from_value(queued).unwrap_or_else(|error| fail("a command", error));
    let answers = CommandAnswers::new(dynamo.client.clone(), VIEWS);
    let waits = CommandAnswer::pending(&queued, BEGIN_MS);
    let work = async || {
        let known =
            (answers.begin(&waits, BEGIN_MS).await?, answers.begin(&waits, BEGIN_MS).await?);
        assert_eq!(known, (None, Some(waits.clone())));
        answers.keep(&waits, Some(&waits), BEGIN_MS).await?;
        assert_eq!(answers.find("c").await?, Some(waits.clone()));
        Ok::<_, AnswersError>(())
    };
    work().await.unwrap_or_else(|error| fail("the answers of commands", error));
    asked(&dynamo)
}

/// The cases that the walk has found.
struct Cases<'t> {
    template: &'t Template,
    on_dynamo: Vec<(&'static str, LocalBoxFuture<'t, Requests>)>,
    /// The slices with a due.
    dues: Vec<&'static str>,
}

impl Visitor for Cases<'_> {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        self.on_dynamo.push((S::NAME, on_dynamo::<S>(self.template).boxed_local()));
    }

    fn due<D: Due<Context: Context<Log: Log<D>>>>(&mut self) {
        self.dues.push(D::NAME);
    }
}

/// Runs each case without a key and with one, each on a new table, and verifies the table afterwards. Both runs have
/// one table if the first one only reads. Returns the requests of the cases, and the queries of commands that no case
/// has.
async fn on_dynamo<S: Slice<Context: Context<Log: Log<S>>>>(template: &Template) -> Requests {
    let log = LogOf::<S>::KIND;
    let mut requests = planned::<S>(log);
    if is_personal::<S>() {
        let asked = Dynamo::with(template, &[]).requests_of_vaults(true).await.into_iter();
        requests.extend(asked.map(|asked| (asked.operation, asked.request)));
        check_personal::<S>(template).await;
    }
    for tips in tips_of(log) {
        for case in S::cases() {
            let mut as_prepared = None;
            for has_key in [false, true] {
                let (dynamo, table) = match as_prepared.take() {
                    Some(prepared) => prepared,
                    None => prepared(template, tips, &case).await,
                };
                if has_key {
                    check_with_keys(&table, &case).await;
                } else {
                    case.check_prepared(&open::<S>(&table, 0)).await;
                }
                let asked = asked(&dynamo);
                let only_reads = asked.iter().all(|(operation, _)| is_read(operation));
                requests.extend(asked);
                if only_reads && !has_key {
                    as_prepared = Some((dynamo, table));
                    continue;
                }
                let wrong = LogOf::<S>::verify(&table).await;
                let wrong = wrong.unwrap_or_else(|error| fail(S::NAME, error as Box<dyn Error>));
                assert!(wrong.is_empty(), "{}: {wrong:?}", S::NAME);
            }
        }
    }
    requests
}

/// Sends the command of a case under keys. A warm handler and a new one send different requests. A key that is new to a
/// stream is searched for in the whole stream.
async fn check_with_keys<S: Slice<Context: Context<Log: Log<S>>>>(table: &InTable, case: &Case<S>) {
    let warm = open::<S>(table, 1);
    for (key, on) in [("again", &warm), ("again", &warm), ("other", &open::<S>(table, 0))] {
        let key = Some(key.to_owned());
        let envelope = Envelope { idempotency_key: key, ..Envelope::default() };
        let handled = on.handle(case.command(), &envelope).await;
        handled.unwrap_or_else(|error| fail(S::NAME, error));
    }
}

fn is_read(operation: &str) -> bool {
    matches!(operation, "Query" | "GetItem" | "BatchGetItem" | "TransactGetItems")
}

/// The requests since the last look.
fn asked(dynamo: &Dynamo) -> Requests {
    let requests = dynamo.wire.take().into_iter();
    requests.map(|Exchange { operation, request, .. }| (operation, request)).collect()
}

/// The queries of any command of the slice. A document is read by its Tip, which its cases show.
fn planned<S: Slice>(log: LogKind) -> Requests {
    if log == LogKind::Documents {
        return Vec::new();
    }
    let catalog = catalog::<S::Context>();
    let plans = ringfence_core::plans::<S>(&catalog).unwrap_or_else(|error| fail(S::NAME, error));
    assert!(!plans.is_empty(), "a command of {} reads something", S::NAME);
    queries(&plans, log)
}

fn queries(plans: &[Plan], log: LogKind) -> Requests {
    let reads = plans.iter().flat_map(|plan| &plan.reads);
    let query = |read: &ringfence_core::Read| {
        let index = match &read.access {
            Access::TagIndex(tag) => Some(format!("tag_{}", tag.key)),
            Access::CompositeIndex(_) => Some("tag_composite".to_owned()),
            Access::Partition | Access::TagItems(_) | Access::TypeItems(_) => None,
        };
        ("Query".to_owned(), json!({ "TableName": table_of(log), "IndexName": index }))
    };
    reads.map(query).collect()
}
