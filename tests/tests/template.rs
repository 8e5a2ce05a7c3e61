//! Least privilege: each function's role says exactly what the function does, and no more.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use ringfence_local::workspace_root;
use ringfence_stack::{CATEGORIES, EVENT_STORES};
use serde_json::{Value, json};

/// The template as JSON; a tag such as `!Ref x` is `{"!Ref": x}`.
fn template() -> Value {
    let text = fs::read_to_string(workspace_root().join("template.yaml")).unwrap();
    let yaml: serde_yaml_ng::Value = serde_yaml_ng::from_str(&text).unwrap();
    serde_json::to_value(yaml).unwrap()
}

fn resources(template: &Value, kind: &str) -> BTreeMap<String, Value> {
    let all = template["Resources"].as_object().unwrap().iter();
    let of_kind = all.filter(|(_, resource)| resource["Type"] == kind);
    of_kind.map(|(id, resource)| (id.clone(), resource["Properties"].clone())).collect()
}

/// The event source mappings of a function, by the names of its events.
fn mappings(function: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let events = function["Events"].as_object().into_iter().flatten();
    events
        .filter(|(_, event)| event["Type"] == "DynamoDB")
        .map(|(name, event)| (name, &event["Properties"]))
}

/// Logical ids and binaries of the functions.
fn functions(template: &Value) -> BTreeMap<String, String> {
    let binary = |id: &String| {
        let metadata = &template["Resources"][id]["Metadata"]["BuildProperties"];
        metadata["Binary"].as_str().unwrap().to_owned()
    };
    resources(template, "AWS::Serverless::Function")
        .into_keys()
        .map(|id| (id.clone(), binary(&id)))
        .collect()
}

fn arn(resource: &str) -> Value {
    json!({ "!GetAtt": format!("{resource}.Arn") })
}

fn allow(sid: &str, action: Value, resource: Value) -> Value {
    json!({ "Sid": sid, "Effect": "Allow", "Action": action, "Resource": resource })
}

/// A statement that holds within a transaction alone.
fn enclosed(sid: &str, action: Value, table: &str, operation: &str) -> Value {
    let mut statement = allow(sid, action, arn(table));
    statement["Condition"] = json!({
        "ForAnyValue:StringEquals": { "dynamodb:EnclosingOperation": [operation] },
    });
    statement
}

/// The statement, for items alone whose partition key is like one of these.
fn leading(mut statement: Value, keys: &[&str]) -> Value {
    statement["Condition"]["ForAllValues:StringLike"] = json!({ "dynamodb:LeadingKeys": keys });
    statement
}

fn log(id: &str) -> Value {
    let actions = json!(["logs:CreateLogStream", "logs:PutLogEvents"]);
    allow("Log", actions, arn(&format!("{id}Logs")))
}

/// What a slice may do, by the log that its context is on.
fn slice(id: &str, binary: &str, template: &Value) -> Vec<Value> {
    let http = &template["Resources"][id]["Properties"]["Events"]["Http"]["Properties"];
    let path = http["Path"].as_str().unwrap();
    let context = path.split('/').nth(1).unwrap();
    let own = if EVENT_STORES.contains(&context) {
        on_aggregates(binary, context)
    } else if CATEGORIES.contains(&context) {
        on_documents(context)
    } else {
        on_events(binary)
    };
    let mut statements = vec![log(id)];
    statements.extend(own);
    let queue = format!("{id}DeadLetters");
    if template["Resources"].get(&queue).is_some() {
        statements.push(allow("KeepFailures", json!("sqs:SendMessage"), arn(&queue)));
    }
    statements
}

/// Read the table and the index that the decision needs, append in a transaction, validate a
/// refusal in a transaction, and record a refusal under the slice's own name.
fn on_events(binary: &str) -> Vec<Value> {
    let index = match binary {
        "record-product-demand" => Some("tag_composite"),
        "order-product" => Some("tag_customerId"),
        "subscribe-student" => Some("tag_studentId"),
        _ => None,
    };
    let read = match index {
        Some(index) => {
            let index = format!("${{EventTable.Arn}}/index/{index}");
            json!([arn("EventTable"), { "!Sub": index }])
        }
        None => arn("EventTable"),
    };
    let append = json!(["dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem"]);
    let refusal = allow("RecordRefusal", json!("dynamodb:PutItem"), arn("EventTable"));
    vec![
        allow("Read", json!("dynamodb:Query"), read),
        enclosed("Append", append, "EventTable", "TransactWriteItems"),
        enclosed("ValidateRefusal", json!("dynamodb:GetItem"), "EventTable", "TransactGetItems"),
        leading(refusal, &[&format!("command#{binary}#*")]),
    ]
}

/// Read and push events of the context's own store; of two aggregates in a transaction alone.
fn on_aggregates(binary: &str, store: &str) -> Vec<Value> {
    let put = json!("dynamodb:PutItem");
    let append = match binary {
        "transfer-points" => enclosed("Append", put, "AggregateTable", "TransactWriteItems"),
        _ => allow("Append", put, arn("AggregateTable")),
    };
    let read = allow("Read", json!("dynamodb:Query"), arn("AggregateTable"));
    [read, append].map(|statement| leading(statement, &[&format!("{store}#*")])).into()
}

/// Read Tips and calves of the context's own category, put and update them, and delete none.
fn on_documents(category: &str) -> Vec<Value> {
    let read = json!(["dynamodb:GetItem", "dynamodb:Query"]);
    let append = json!(["dynamodb:PutItem", "dynamodb:UpdateItem"]);
    let table = || arn("DocumentTable");
    [allow("Read", read, table()), allow("Append", append, table())]
        .map(|statement| leading(statement, &[&format!("{category}-*")]))
        .into()
}

/// The tables of the three logs.
const LOGS: [&str; 3] = ["EventTable", "AggregateTable", "DocumentTable"];

/// What a reader of tables' streams may do: log, read the streams, and what Lambda does in its name
/// with batches that it gives up.
fn reader(id: &str, tables: &[&str], own: Vec<Value>) -> Vec<Value> {
    let stream = json!([
        "dynamodb:DescribeStream",
        "dynamodb:GetRecords",
        "dynamodb:GetShardIterator",
        "dynamodb:ListStreams",
    ]);
    let stream_arn = |table: &&str| json!({ "!GetAtt": format!("{table}.StreamArn") });
    let stream_arns = match tables {
        [table] => stream_arn(table),
        tables => tables.iter().map(stream_arn).collect(),
    };
    let (bucket, failed) = (arn(&format!("{id}FailedBatches")), format!("{id}FailedBatches.Arn"));
    let objects = json!({ "!Sub": format!("${{{failed}}}/*") });
    let mut statements = vec![log(id), allow("ReadStream", stream, stream_arns)];
    statements.extend(own);
    statements.push(allow("KeepFailedBatches", json!("s3:PutObject"), objects));
    statements.push(allow("FindFailedBatches", json!("s3:ListBucket"), bucket));
    statements
}

fn publisher(id: &str) -> Vec<Value> {
    let mut publish = allow("Publish", json!("events:PutEvents"), arn("EventTopic"));
    let sources = ringfence_stack::contexts().unwrap();
    publish["Condition"] = json!({ "StringEquals": { "events:source": sources } });
    let poison = allow("KeepPoison", json!("sqs:SendMessage"), arn("PublishEventsDeadLetters"));
    reader(id, &LOGS, vec![publish, poison])
}

fn indexer(id: &str) -> Vec<Value> {
    let append = json!(["dynamodb:PutItem", "dynamodb:UpdateItem"]);
    let own = vec![
        allow("ReadEvents", json!("dynamodb:Query"), arn("EventTable")),
        enclosed("ValidateEvents", json!("dynamodb:GetItem"), "EventTable", "TransactGetItems"),
        allow("ReadAggregates", json!("dynamodb:Query"), arn("AggregateTable")),
        allow("ReadDocuments", json!(["dynamodb:GetItem", "dynamodb:Query"]), arn("DocumentTable")),
        allow("ReadProgress", json!("dynamodb:BatchGetItem"), arn("IndexTable")),
        enclosed("Append", append, "IndexTable", "TransactWriteItems"),
        allow("KeepPoison", json!("sqs:SendMessage"), arn("IndexEventsDeadLetters")),
    ];
    reader(id, &LOGS, own)
}

fn projector(id: &str) -> Vec<Value> {
    let index = json!(["dynamodb:GetItem", "dynamodb:Query"]);
    let read = json!(["dynamodb:BatchGetItem", "dynamodb:GetItem"]);
    let write = json!([
        "dynamodb:ConditionCheckItem",
        "dynamodb:DeleteItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
    ]);
    let move_readers = allow("MoveReaders", json!("dynamodb:UpdateItem"), arn("ViewTable"));
    let own = vec![
        allow("ReadIndex", index, arn("IndexTable")),
        allow("ReadRows", read, arn("ViewTable")),
        enclosed("WriteRows", write, "ViewTable", "TransactWriteItems"),
        leading(move_readers, &["$ReaderCheckpoint-*", "$View-*"]),
    ];
    reader(id, &["IndexTable"], own)
}

fn query(id: &str) -> Vec<Value> {
    let read = json!(["dynamodb:GetItem", "dynamodb:Query"]);
    let index = allow("ReadIndex", json!("dynamodb:GetItem"), arn("IndexTable"));
    vec![log(id), index, allow("ReadRows", read, arn("ViewTable"))]
}

#[test]
fn every_function_has_a_role_of_its_own_that_allows_what_it_does() {
    let template = template();
    let functions = functions(&template);
    let properties = resources(&template, "AWS::Serverless::Function");
    for id in functions.keys() {
        assert_eq!(properties[id]["Role"], arn(&format!("{id}Role")), "{id}");
        assert!(properties[id].get("Policies").is_none(), "{id}: policies belong to the role");
    }
    let mut roles = resources(&template, "AWS::IAM::Role");
    for (id, binary) in &functions {
        let role = roles.remove(&format!("{id}Role")).unwrap();
        assert!(role.get("ManagedPolicyArns").is_none(), "{id}: a managed policy");
        let principal = &role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"];
        assert_eq!(*principal, json!({ "Service": "lambda.amazonaws.com" }), "{id}");
        let [policy] = role["Policies"].as_array().unwrap().as_slice() else {
            panic!("{id}: one policy says it all");
        };
        let expected = match binary.as_str() {
            "publish-events" => publisher(id),
            "index-events" => indexer(id),
            "project-views" => projector(id),
            "query-views" => query(id),
            _ => slice(id, binary, &template),
        };
        let found = policy["PolicyDocument"]["Statement"].as_array().unwrap();
        assert_eq!(*found, expected, "{id}");
    }
    assert!(roles.is_empty(), "roles of no function: {:?}", roles.keys());
}

/// Every value under `key`, at any depth.
fn collect<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get(key));
            map.values().for_each(|value| collect(value, key, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, key, found)),
        _ => {}
    }
}

#[test]
fn no_statement_names_everything_and_only_rows_are_deleted() {
    let template = template();
    let (mut named, mut actions) = (Vec::new(), Vec::new());
    collect(&template["Resources"], "Resource", &mut named);
    collect(&template["Resources"], "Action", &mut actions);
    assert!(named.len() > 12 && actions.len() > 12, "finds no statements");
    for resource in named.iter().map(|resource| resource.to_string()) {
        // The objects of a bucket are the one star.
        let rest = resource.replace("FailedBatches.Arn}/*", "");
        assert!(!rest.contains('*'), "{resource}");
    }
    for action in actions.iter().map(|action| action.to_string()) {
        assert!(!action.contains('*'), "{action}");
    }
    let mut statements = Vec::new();
    collect(&template["Resources"], "Statement", &mut statements);
    for statement in statements.iter().flat_map(|list| list.as_array().unwrap()) {
        let deletes = statement["Action"].to_string().contains("Delete");
        assert!(!deletes || statement["Resource"] == arn("ViewTable"), "{statement}");
    }
}

/// A mapping gives up in time for its stream to have the record still, and keeps what it gives up.
#[track_caller]
fn check_kept(id: &str, mapping: &Value) {
    assert!(mapping["MaximumRetryAttempts"].as_u64().unwrap() <= 10, "{id}");
    assert!(mapping["MaximumRecordAgeInSeconds"].as_u64().unwrap() < 24 * 3600, "{id}");
    let kept = &mapping["DestinationConfig"]["OnFailure"]["Destination"];
    assert_eq!(*kept, arn(&format!("{id}FailedBatches")), "{id}");
}

#[test]
fn every_mapping_keeps_what_it_gives_up_and_every_queue_and_mapping_has_its_alarms() {
    let template = template();
    let alarms = resources(&template, "AWS::CloudWatch::Alarm");
    let mut readers = BTreeSet::new();
    for (id, function) in resources(&template, "AWS::Serverless::Function") {
        for (name, mapping) in mappings(&function) {
            // Counted for each mapping; what follows below is counted for the function.
            let gave_up = match name.as_str() {
                "Stream" => format!("{id}GaveUp"),
                name => format!("{id}GaveUp{name}"),
            };
            let dimension = &alarms[&gave_up]["Dimensions"][0];
            let expected = json!({
                "Name": "EventSourceMappingUUID", "Value": { "!Ref": format!("{id}{name}") },
            });
            assert_eq!(*dimension, expected, "{gave_up}");
            check_kept(&id, mapping);
            readers.insert(id.clone());
        }
    }
    let expected = ["IndexEvents", "ProjectViews", "PublishEvents"].map(str::to_owned);
    assert_eq!(readers, BTreeSet::from(expected));
    for id in readers {
        let behind = &alarms[&format!("{id}Behind")];
        assert_eq!(behind["Dimensions"][0]["Value"], json!({ "!Ref": id }), "{id}");
        assert!(behind["Threshold"].as_u64().unwrap() < 12 * 3600 * 1000, "{id}: too late");
        assert!(alarms.contains_key(&format!("{id}Fails")), "{id}");
        // What project-views gives up are doorbells; the next one brings as much.
        let loses = alarms.contains_key(&format!("{id}LosesBatches"));
        assert_eq!(loses, id != "ProjectViews", "{id}");
    }
    for queue in resources(&template, "AWS::SQS::Queue").into_keys() {
        let alarm = queue.replace("DeadLetters", "HasDeadLetters");
        let value = &alarms[&alarm]["Dimensions"][0]["Value"];
        assert_eq!(*value, json!({ "!GetAtt": format!("{queue}.QueueName") }), "{queue}");
    }
    for (id, alarm) in alarms {
        assert!(alarm["AlarmActions"].is_object(), "{id} tells nobody");
    }
}

#[test]
fn the_streams_of_all_logs_are_read_alike() {
    let template = template();
    let functions = resources(&template, "AWS::Serverless::Function");
    for id in ["IndexEvents", "PublishEvents"] {
        let (mut tables, mut settings) = (BTreeSet::new(), BTreeSet::new());
        for (_, mapping) in mappings(&functions[id]) {
            let mut rest = mapping.clone();
            let stream = rest.as_object_mut().unwrap().remove("Stream").unwrap();
            let table = stream["!GetAtt"].as_str().unwrap().split('.').next().unwrap();
            tables.insert(table.to_owned());
            rest.as_object_mut().unwrap().remove("FilterCriteria").unwrap();
            settings.insert(rest.to_string());
        }
        assert_eq!(tables, LOGS.map(str::to_owned).into(), "{id}");
        assert_eq!(settings.len(), 1, "{id}: {settings:#?}");
    }
}

#[test]
fn every_table_is_kept_protected_and_can_be_restored() {
    let template = template();
    let tables = resources(&template, "AWS::DynamoDB::Table");
    assert_eq!(tables.len(), LOGS.len() + 2, "the logs, the index and the views");
    for (id, table) in tables {
        let resource = &template["Resources"][&id];
        assert_eq!(resource["DeletionPolicy"], "RetainExceptOnCreate", "{id}");
        assert_eq!(resource["UpdateReplacePolicy"], "Retain", "{id}");
        assert_eq!(table["DeletionProtectionEnabled"], true, "{id}");
        let recovery = &table["PointInTimeRecoverySpecification"];
        assert_eq!(recovery["PointInTimeRecoveryEnabled"], true, "{id}");
        assert_eq!(table["BillingMode"], "PAY_PER_REQUEST", "{id}");
    }
}

#[test]
fn a_dead_letter_queue_takes_from_its_own_rule_alone() {
    let template = template();
    let mut queues = 0;
    for (id, function) in resources(&template, "AWS::Serverless::Function") {
        let Some(rule) = function["Events"].get("Rule") else { continue };
        queues += 1;
        let queue = arn(&format!("{id}DeadLetters"));
        assert_eq!(rule["Properties"]["DeadLetterConfig"]["Arn"], queue, "{id}");
        let policies = resources(&template, "AWS::SQS::QueuePolicy");
        let policy = &policies[&format!("{id}DeadLettersPolicy")]["PolicyDocument"]["Statement"];
        let expected = json!([{
            "Effect": "Allow",
            "Principal": { "Service": "events.amazonaws.com" },
            "Action": "sqs:SendMessage",
            "Resource": queue,
            "Condition": { "ArnEquals": { "aws:SourceArn": arn(&format!("{id}Rule")) } },
        }]);
        assert_eq!(*policy, expected, "{id}");
    }
    assert_eq!(queues, 3, "three automations");
}
