//! What the template must say of roles, mappings, alarms, tables and queues.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod roles;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use ringfence_local::workspace_root;
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

fn arn(resource: &str) -> Value {
    json!({ "!GetAtt": format!("{resource}.Arn") })
}

/// The tables of the three logs.
const LOGS: [&str; 3] = ["EventTable", "AggregateTable", "DocumentTable"];

/// A mapping gives up in time for its stream to have the record still, and keeps what it gives up.
/// Deliveries of an outage last as long as the function may run, so they end by age; crashes are counted.
#[track_caller]
fn check_kept(id: &str, function: &Value, mapping: &Value) {
    let age = mapping["MaximumRecordAgeInSeconds"].as_u64().unwrap();
    assert!(age < 24 * 3600, "{id}");
    match mapping["MaximumRetryAttempts"].as_u64() {
        None => assert_eq!(id, "ProjectViews", "what one doorbell brings, every other brings"),
        Some(attempts) => {
            let delivery = function["Timeout"].as_u64().unwrap() - 2; // for the answer
            assert!((attempts + 1) * delivery >= age && attempts < 100, "{id}");
        }
    }
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
            let table = if name == "Stream" { "" } else { name };
            for (alarm, metric) in [
                (format!("{id}GaveUp{table}"), "OnFailureDestinationDeliveredEventCount"),
                (format!("{id}Stopped{table}"), "PolledEventCount"),
            ] {
                let found = alarms.get(&alarm).unwrap_or_else(|| {
                    panic!("template.yaml lacks the alarm {alarm}, of {metric} of {id}{name}")
                });
                assert_eq!(found["MetricName"], metric, "{alarm}");
                let expected = json!({
                    "Name": "EventSourceMappingUUID", "Value": { "!Ref": format!("{id}{name}") },
                });
                assert_eq!(found["Dimensions"][0], expected, "{alarm}");
            }
            // Without it Lambda counts neither.
            assert_eq!(mapping["MetricsConfig"]["Metrics"], json!(["EventCount"]), "{id}{name}");
            check_kept(&id, &function, mapping);
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
        assert_eq!(alarm["TreatMissingData"], silence(&alarm), "{id}");
    }
}

#[test]
fn answers_that_have_an_alarm_of_their_own_are_no_failed_requests() {
    let template = template();
    let alarms = resources(&template, "AWS::CloudWatch::Alarm");
    let metrics = &alarms["CommandsFail"]["Metrics"];
    assert_eq!(metrics[0]["Expression"], "answers - FILL(notReady, 0)");
    let metric = |n: usize| (&metrics[n]["Id"], &metrics[n]["MetricStat"]["Metric"]);
    let (id, answers) = metric(1);
    assert_eq!((id, &answers["MetricName"]), (&json!("answers"), &json!("5xx")));
    let (id, not_ready) = metric(2);
    assert_eq!((id, &not_ready["MetricName"]), (&json!("notReady"), &json!("views_not_ready")));
    let dimension = json!([{ "Name": "function", "Value": { "!Ref": "QueryViews" } }]);
    assert_eq!(not_ready["Dimensions"], dimension);
    assert_eq!(alarms["RowsParked"]["MetricName"], "rows_parked");
}

/// What it means when a metric has no value.
fn silence(alarm: &Value) -> &'static str {
    match alarm["MetricName"].as_str().unwrap_or("an expression") {
        // Lambda counts each poll. One that is off polls nothing, and nothing else tells of it.
        "PolledEventCount" => "breaching",
        // SQS stops counting a queue that rests; its letters are still there.
        "ApproximateNumberOfMessagesVisible" => "ignore",
        // Nobody rings the views of a stack at rest; its parked rows are still there.
        "rows_parked" => "ignore",
        // These are counted when something happens.
        _ => "notBreaching",
    }
}

#[test]
fn every_alarm_is_on_the_dashboard_and_in_the_runbook() {
    let template = template();
    let dashboards = resources(&template, "AWS::CloudWatch::Dashboard");
    let body = dashboards["Dashboard"]["DashboardBody"]["!Sub"].as_str().unwrap();
    let runbook = fs::read_to_string(workspace_root().join("docs/runbook.md")).unwrap();
    let table = runbook.split("| alarm | go to |").nth(1).unwrap().split("\n\n").next().unwrap();
    // `…Fails` stands for what ends so, `PublishEventsGaveUp…` for what begins so.
    let named: Vec<&str> = table.split('`').skip(1).step_by(2).collect();
    let is_named = |alarm: &str| {
        named.iter().any(|name| match (name.strip_prefix('…'), name.strip_suffix('…')) {
            (Some(end), _) => alarm.ends_with(end),
            (_, Some(begin)) => alarm.starts_with(begin),
            _ => alarm == *name,
        })
    };
    for alarm in resources(&template, "AWS::CloudWatch::Alarm").into_keys() {
        assert!(body.contains(&format!("${{{alarm}.Arn}}")), "the dashboard lacks {alarm}");
        assert!(is_named(&alarm), "docs/runbook.md: its table of alarms lacks `{alarm}`");
    }
}

/// By these `ringfence --stack` finds what it works on.
#[test]
fn the_outputs_name_every_table_queue_and_bucket() {
    let template = template();
    for (kind, end) in [
        ("AWS::DynamoDB::Table", "Name"),
        ("AWS::Events::EventBus", "Name"),
        ("AWS::S3::Bucket", "Name"),
        ("AWS::SQS::Queue", "Url"),
    ] {
        for id in resources(&template, kind).into_keys() {
            let value = &template["Outputs"][format!("{id}{end}")]["Value"];
            let lacking = format!("template.yaml: Outputs lacks {id}{end} with `Value: !Ref {id}`");
            assert_eq!(*value, json!({ "!Ref": id }), "{lacking}");
        }
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
