//! Permissions besides items of tables, which follow from the template's functions.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::kit::fail;
use ringfence_services::project_views::NOTIFICATION_SOURCE;
use ringfence_stack::Stack;
use ringfence_template::written::statements_of;
use serde_json::{Value, json};

use crate::template::{AUTOMATIONS_QUEUE, arn, mappings};

/// A statement of a role.
pub(crate) fn allow(sid: &str, action: Value, resource: Value) -> Value {
    json!({ "Sid": sid, "Effect": "Allow", "Action": action, "Resource": resource })
}

/// The only statement for all resources: X-Ray has no resources for this action.
pub(crate) fn send_spans() -> Value {
    allow("SendSpans", json!("xray:PutTraceSegments"), json!("*"))
}

/// The statements that a role needs besides items of tables. They follow from the template's functions: their log, the
/// streams that they read, the bus and the queues that they write to, and the buckets for failed batches.
pub(crate) fn besides_items(
    stack: &Stack,
    template: &Value,
    functions: &BTreeMap<String, Value>,
    with_vaults: &BTreeSet<String>,
) -> Vec<Value> {
    let mut due =
        vec![allow("Log", json!(["logs:CreateLogStream", "logs:PutLogEvents"]), arn("Logs"))];
    for (id, function) in functions {
        let streams: Vec<Value> = mappings(function).map(|(_, m)| m["Stream"].clone()).collect();
        if let Some(stream) = streams.first() {
            let names = ["DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"];
            let names = names.map(|name| format!("dynamodb:{name}"));
            let streams = if streams.len() == 1 { stream.clone() } else { json!(streams) };
            due.push(allow("ReadStream", json!(names), streams));
            let objects = json!({ "!Sub": format!("${{{id}FailedBatches.Arn}}/*") });
            let bucket = arn(&format!("{id}FailedBatches"));
            due.push(allow("KeepFailedBatches", json!("s3:PutObject"), objects));
            due.push(allow("FindFailedBatches", json!("s3:ListBucket"), bucket));
        }
        due.extend(of_variables(template, function));
        let reference = |name: &str| {
            let value = &function["Environment"]["Variables"][name]["!Ref"];
            value.as_str().map(arn)
        };
        if let Some(bus) = reference("EVENT_BUS") {
            let mut publish = allow("Publish", json!("events:PutEvents"), bus);
            let contexts = stack.contexts.iter().map(|context| context.name);
            let sources: BTreeSet<_> = if id == "ProjectViews" {
                [NOTIFICATION_SOURCE].into()
            } else {
                contexts.collect()
            };
            publish["Condition"] = json!({ "StringEquals": { "events:source": sources } });
            due.push(publish);
        }
        if let Some(queue) = reference("DEAD_LETTER_QUEUE_URL") {
            due.push(allow("KeepPoison", json!("sqs:SendMessage"), queue));
        }
        if let Some(queue) = reference("COMMAND_QUEUE_URL") {
            due.push(allow("QueueCommands", json!("sqs:SendMessage"), queue));
        }
        let events = function["Events"].as_object().into_iter().flatten();
        for (_, event) in events.filter(|(_, event)| event["Type"] == "SQS") {
            let names = [
                "ChangeMessageVisibility",
                "DeleteMessage",
                "GetQueueAttributes",
                "ReceiveMessage",
            ];
            let names = names.map(|name| format!("sqs:{name}"));
            let queue = event["Properties"]["Queue"].clone();
            due.push(allow("ReadQueue", json!(names), queue));
        }
    }
    let binary =
        |id: &str| template["Resources"][id]["Metadata"]["BuildProperties"]["Binary"].as_str();
    let needs = |id: &&String| binary(id).is_some_and(|name| with_vaults.contains(name));
    let opens: Vec<_> = functions.keys().filter(needs).collect();
    if !opens.is_empty() {
        let is_reactor = |id: &str| stack.reactors().any(|(_, it)| binary(id) == Some(it.name));
        due.extend(of_vault(opens.iter().any(|id| *id != "QueryViews" && !is_reactor(id))));
    }
    let destroys = |id: &String| {
        let mut reactors = stack.reactors().filter(|(_, reactor)| reactor.destroys_keys());
        reactors.any(|(_, reactor)| binary(id) == Some(reactor.name))
    };
    if functions.keys().any(destroys) {
        due.push(read_key_table());
    }
    if functions.contains_key("ForwardSpans") {
        due.push(send_spans());
    }
    let keeps = |function: &Value| function["EventInvokeConfig"].get("DestinationConfig").is_some();
    if functions.values().any(keeps) {
        due.push(allow("KeepFailures", json!("sqs:SendMessage"), arn(AUTOMATIONS_QUEUE)));
    }
    due
}

/// The statements on the key of KMS. A function that seals may make the keys of the stack.
fn of_vault(seals: bool) -> [Value; 2] {
    let (actions, purposes): (&[&str], &[&str]) = match seals {
        true => (&["kms:Decrypt", "kms:Encrypt"], &["branch", "blind"]),
        false => (&["kms:Decrypt"], &["branch"]),
    };
    let mut wrap = allow("WrapPersonalKeys", json!(actions), personal_key());
    wrap["Condition"] = json!({ "StringEquals": {
        "kms:EncryptionContext:stack": { "!Ref": "AWS::StackName" },
        "kms:EncryptionContext:purpose": purposes,
    }});
    [wrap, read_key_table()]
}

/// The key of KMS that the stack makes or that a parameter names.
fn personal_key() -> Value {
    json!({ "!If": ["MakesPersonalKey", arn("PersonalKey"), { "!Ref": "PersonalKeyArn" }] })
}

fn read_key_table() -> Value {
    let mut table = allow("ReadKeyTable", json!("kms:Decrypt"), personal_key());
    let dynamo = json!({ "!Sub": "dynamodb.${AWS::Region}.amazonaws.com" });
    table["Condition"] = json!({ "StringEquals": { "kms:ViaService": dynamo } });
    table
}

/// The statements for the variables of a function and the variables of all functions.
fn of_variables(template: &Value, function: &Value) -> Vec<Value> {
    let variables = [&template["Globals"]["Function"], function];
    let variables = variables.map(|of| of["Environment"]["Variables"].as_object());
    let variables = variables.into_iter().flatten().flatten();
    let variables = variables.map(|(name, value)| (name.as_str().into(), tagged(value))).collect();
    let has = |section: &str, id: &str| template[section].get(id).is_some();
    let has_identity = ["Parameters", "Resources"].iter().any(|it| has(it, "MailIdentity"));
    let all = statements_of(&variables, has_identity, |id| has("Resources", id));
    let text: String = all.into_iter().map(|statement| statement.text).collect();
    let all = serde_yaml_ng::from_str::<Option<Vec<serde_yaml_ng::Value>>>(&text);
    let all = all.map_err(|error| error.to_string()).and_then(|all| {
        serde_json::to_value(all.unwrap_or_default()).map_err(|error| error.to_string())
    });
    all.unwrap_or_else(|error| fail("statements", error)).as_array().cloned().unwrap_or_default()
}

/// The statements that a role lacks, as text to write, and the statements that nothing needs.
pub(crate) fn differences(role: &str, found: &[Value], expected: &[Value]) -> Vec<String> {
    let lacks = expected.iter().filter(|statement| !found.contains(statement));
    let lacks = lacks.map(|statement| {
        let yaml = serde_yaml_ng::to_string(&[tagged(statement)]).expect("the shape of a template");
        format!("{role} lacks this statement, or has another one of its Sid:\n{yaml}")
    });
    let sids: BTreeSet<_> = expected.iter().map(|statement| statement["Sid"].to_string()).collect();
    let extra = found.iter().map(|statement| statement["Sid"].to_string());
    let extra = extra.filter(|sid| !sids.contains(sid));
    let extra = extra
        .map(|sid| format!("{role} has the statement {sid}, which none of its functions needs"));
    lacks.chain(extra).collect()
}

/// The YAML of a value, with `{"!Ref": x}` as the tag `!Ref x`.
fn tagged(value: &Value) -> serde_yaml_ng::Value {
    use serde_yaml_ng::{
        Value as Yaml,
        value::{Tag, TaggedValue},
    };

    match value {
        Value::Array(items) => Yaml::Sequence(items.iter().map(tagged).collect()),
        Value::Object(map) => match map.iter().next() {
            Some((tag, value)) if tag.starts_with('!') => {
                let (tag, value) = (Tag::new(tag), tagged(value));
                Yaml::Tagged(Box::new(TaggedValue { tag, value }))
            }
            _ => Yaml::Mapping(
                map.iter().map(|(k, v)| (Yaml::from(k.as_str()), tagged(v))).collect(),
            ),
        },
        scalar => serde_yaml_ng::to_value(scalar).expect("the shape of a template"),
    }
}

#[test]
fn a_wrong_role_is_reported_with_what_to_write() {
    let log = allow("Log", json!("logs:PutLogEvents"), arn("Logs"));
    let check = |found: &[Value], expected: &[Value], trouble: &str| {
        assert_eq!(differences("CartsRole", found, expected), [trouble]);
    };
    check(
        &[],
        std::slice::from_ref(&log),
        "CartsRole lacks this statement, or has another one of its Sid:\n\
         - Action: logs:PutLogEvents\n  Effect: Allow\n  Resource: !GetAtt Logs.Arn\n  Sid: Log\n",
    );
    check(&[log], &[], "CartsRole has the statement \"Log\", which none of its functions needs");
}
