//! Least privilege: each function's role says exactly what the function does, and no more.

use std::collections::BTreeMap;

use ringfence_stack::{CATEGORIES, EVENT_STORES};
use serde_json::{Value, json};

use crate::{LOGS, arn, resources, template};

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

/// What a slice may do, by the log that its context is on. Which indexes it reads, and whether it pushes
/// within transactions alone, is in the requests of its cases: the `cases.rs` of the log's tests compares.
fn slice(id: &str, binary: &str, template: &Value, found: &[Value]) -> Vec<Value> {
    let http = &template["Resources"][id]["Properties"]["Events"]["Http"]["Properties"];
    let path = http["Path"].as_str().unwrap();
    let context = path.split('/').nth(1).unwrap();
    let own = if EVENT_STORES.contains(&context) {
        on_aggregates(context, found)
    } else if CATEGORIES.contains(&context) {
        on_documents(context)
    } else {
        on_events(binary, found)
    };
    let mut statements = vec![log(id)];
    statements.extend(own);
    let queue = format!("{id}DeadLetters");
    if template["Resources"].get(&queue).is_some() {
        statements.push(allow("KeepFailures", json!("sqs:SendMessage"), arn(&queue)));
    }
    statements
}

fn by_sid<'a>(statements: &'a [Value], sid: &str) -> Option<&'a Value> {
    statements.iter().find(|statement| statement["Sid"] == sid)
}

/// Read the table and the indexes that the decision needs, append in a transaction, validate a
/// refusal in a transaction, and record a refusal under the slice's own name.
fn on_events(binary: &str, found: &[Value]) -> Vec<Value> {
    let read = by_sid(found, "Read").and_then(|read| read["Resource"].as_array());
    let indexes = read.into_iter().flatten().filter(|resource| {
        let sub = resource["!Sub"].as_str().unwrap_or_default();
        sub.starts_with("${EventTable.Arn}/index/tag_")
    });
    let indexes: Vec<Value> = indexes.cloned().collect();
    let read = match indexes.as_slice() {
        [] => arn("EventTable"),
        indexes => [&[arn("EventTable")], indexes].concat().into(),
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

/// Read and push events of the context's own store, if they are of several aggregates in a transaction.
fn on_aggregates(store: &str, found: &[Value]) -> Vec<Value> {
    let put = json!("dynamodb:PutItem");
    let condition = by_sid(found, "Append").map(|append| &append["Condition"]);
    let append = match condition.and_then(|condition| condition.get("ForAnyValue:StringEquals")) {
        Some(_) => enclosed("Append", put, "AggregateTable", "TransactWriteItems"),
        None => allow("Append", put, arn("AggregateTable")),
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
        allow("ValidateEvents", json!("dynamodb:BatchGetItem"), arn("EventTable")),
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

/// What a role lacks, as it is to be written, and which of its statements nothing needs.
fn differences(role: &str, found: &[Value], expected: &[Value]) -> Vec<String> {
    let lacks = expected.iter().filter(|statement| !found.contains(statement));
    let lacks = lacks.map(|statement| {
        let yaml = serde_yaml_ng::to_string(&[tagged(statement)]).unwrap();
        format!("{role} lacks this statement, or has another one of its Sid:\n{yaml}")
    });
    let extra = found
        .iter()
        .filter(|statement| !expected.iter().any(|expected| expected["Sid"] == statement["Sid"]));
    let extra = extra.map(|statement| {
        format!("{role} has the statement {}, which the function does not need", statement["Sid"])
    });
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
        scalar => serde_yaml_ng::to_value(scalar).unwrap(),
    }
}

#[test]
fn a_role_that_differs_is_told_by_what_to_write() {
    let read = allow("Read", json!("dynamodb:Query"), arn("EventTable"));
    let check = |found: &[Value], expected: &[Value], trouble: &str| {
        assert_eq!(differences("PlaceOrderRole", found, expected), [trouble]);
    };
    check(
        &[],
        std::slice::from_ref(&read),
        "PlaceOrderRole lacks this statement, or has another one of its Sid:\n\
         - Action: dynamodb:Query\n  Effect: Allow\n  Resource: !GetAtt EventTable.Arn\n  Sid: Read\n",
    );
    check(
        &[read],
        &[],
        "PlaceOrderRole has the statement \"Read\", which the function does not need",
    );
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
    let mut troubles = Vec::new();
    for (id, binary) in &functions {
        let role = roles.remove(&format!("{id}Role")).unwrap();
        assert!(role.get("ManagedPolicyArns").is_none(), "{id}: a managed policy");
        let principal = &role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"];
        assert_eq!(*principal, json!({ "Service": "lambda.amazonaws.com" }), "{id}");
        let [policy] = role["Policies"].as_array().unwrap().as_slice() else {
            panic!("{id}: one policy says it all");
        };
        let found = policy["PolicyDocument"]["Statement"].as_array().unwrap();
        let expected = match binary.as_str() {
            "publish-events" => publisher(id),
            "index-events" => indexer(id),
            "project-views" => projector(id),
            "query-views" => query(id),
            _ => slice(id, binary, &template, found),
        };
        troubles.extend(differences(&format!("{id}Role"), found, &expected));
    }
    assert!(troubles.is_empty(), "template.yaml:\n{}", troubles.join("\n"));
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
