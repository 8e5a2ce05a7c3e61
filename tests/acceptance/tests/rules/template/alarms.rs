//! One alarm for each kind of trouble, over all functions or mappings that can have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use ringfence_acceptance::applications;
use ringfence_local::workspace_root;
use ringfence_views::DUE_LATE_MS;
use serde_json::{Value, json};

use ringfence_testing::template::{check_none, differences, mappings, resources};

use crate::template::{NOTIFIER, templates};

/// An alarm on one metric of several functions or mappings.
struct Together {
    alarm: &'static str,
    metric: &'static str,
    dimension: &'static str,
    /// The expression over the Ids of the metrics.
    expression: fn(&[&str]) -> String,
}

/// The sum of all metrics. One without a value counts as 0: a function that is not invoked, or that a condition leaves
/// out, does not hide the others.
fn sum(_: &[&str]) -> String {
    "SUM(FILL(METRICS(), 0))".to_owned()
}

const TOGETHER: [Together; 5] = [
    Together {
        alarm: "StreamsBehind",
        metric: "IteratorAge",
        dimension: "FunctionName",
        expression: |ids| {
            let late: Vec<_> = ids.iter().map(|id| format!("{id} > 3600000")).collect();
            late.join(" OR ")
        },
    },
    // A metric without a value counts as 0, and so does the product.
    Together {
        alarm: "MappingsStopped",
        metric: "PolledEventCount",
        dimension: "EventSourceMappingUUID",
        expression: |ids| ids.join(" * "),
    },
    Together {
        alarm: "BatchesGivenUp",
        metric: "OnFailureDestinationDeliveredEventCount",
        dimension: "EventSourceMappingUUID",
        expression: sum,
    },
    Together {
        alarm: "BatchesLost",
        metric: "DestinationDeliveryFailures",
        dimension: "FunctionName",
        expression: sum,
    },
    Together {
        alarm: "FunctionsFail",
        metric: "Errors",
        dimension: "FunctionName",
        expression: sum,
    },
];

/// Logical ids of the functions, or of the event source mappings, that an alarm must watch.
fn watched(template: &Value, alarm: &str) -> BTreeSet<String> {
    let functions = resources(template, "AWS::Serverless::Function");
    let slices: BTreeSet<_> = applications()
        .flat_map(|of| of.stack.slices().map(|(_, slice)| slice.name).collect::<Vec<_>>())
        .collect();
    let is_slice = |id: &str| {
        let binary = &template["Resources"][id]["Metadata"]["BuildProperties"]["Binary"];
        binary.as_str().is_some_and(|binary| slices.contains(binary))
    };
    let is_watched = |(id, function): &(&String, &Value)| match alarm {
        // A lost span is still in the log.
        "FunctionsFail" => !is_slice(id) && *id != "ForwardSpans",
        // Batches that project-views gives up are notifications. The next one does their work.
        "BatchesLost" => {
            *id != "ProjectViews" && *id != NOTIFIER && mappings(function).next().is_some()
        }
        // Each reader looks once a minute, so batches that notify-readers gives up do no harm.
        "StreamsBehind" | "BatchesGivenUp" => {
            *id != NOTIFIER && mappings(function).next().is_some()
        }
        _ => mappings(function).next().is_some(),
    };
    let watched = functions.iter().filter(is_watched);
    if ["MappingsStopped", "BatchesGivenUp"].contains(&alarm) {
        let of = |(id, function)| mappings(function).map(move |(name, _)| format!("{id}{name}"));
        watched.flat_map(of).collect()
    } else {
        watched.map(|(id, _)| id.clone()).collect()
    }
}

#[test]
fn every_reader_and_mapping_is_in_the_alarms_of_its_kind() {
    for template in templates() {
        let alarms = resources(&template, "AWS::CloudWatch::Alarm");
        let mut lines = Vec::new();
        for Together { alarm, metric, dimension, expression } in TOGETHER {
            let metrics = alarms[alarm]["Metrics"].as_array().unwrap();
            let (first, rest) = metrics.split_first().unwrap();
            assert!(rest.len() <= 10, "{alarm}: CloudWatch takes 10 metrics in an alarm");
            let mut found = BTreeSet::new();
            for one in rest {
                let of = &one["MetricStat"]["Metric"];
                assert_eq!(
                    (&of["Namespace"], &of["MetricName"]),
                    (&json!("AWS/Lambda"), &json!(metric))
                );
                assert_eq!(of["Dimensions"][0]["Name"], dimension, "{alarm}");
                let stat = |one: &Value| {
                    [&one["MetricStat"]["Stat"], &one["MetricStat"]["Period"]].map(Value::clone)
                };
                assert_eq!(stat(one), stat(&rest[0]), "{alarm}");
                // A function that a condition leaves out has another value in its place.
                let value = &of["Dimensions"][0]["Value"];
                let named = value["!Ref"].as_str().or(value["!If"][1]["!Ref"].as_str());
                found.insert(named.unwrap().to_owned());
            }
            lines.extend(differences(
                &found,
                &watched(&template, alarm),
                |id| {
                    let stat = &rest[0]["MetricStat"];
                    format!(
                        "template.yaml: the Metrics of {alarm} lack `{{ Id: x, ReturnData: false, MetricStat: \
                         {{ Stat: {}, Period: {}, Metric: {{ Namespace: AWS/Lambda, MetricName: {metric}, \
                         Dimensions: [{{ Name: {dimension}, Value: !Ref {id} }}] }} }} }}`, and its Expression the Id",
                        stat["Stat"].as_str().unwrap(),
                        stat["Period"]
                    )
                },
                |id| format!("template.yaml: {alarm} looks at {id}, but should not"),
            ));
            let ids: Vec<_> = rest.iter().map(|one| one["Id"].as_str().unwrap()).collect();
            let expected = expression(&ids);
            if first["Expression"] != expected {
                lines.push(format!("template.yaml: {alarm} lacks `Expression: \"{expected}\"`"));
            }
        }
        check_none(&lines);
    }
}

/// A function that waits out an outage reports its lateness once in a delivery.
#[test]
fn the_lateness_of_a_stream_needs_to_be_reported_once() {
    for template in templates() {
        let alarm = &resources(&template, "AWS::CloudWatch::Alarm")["StreamsBehind"];
        let functions = resources(&template, "AWS::Serverless::Function");
        let readers = functions.values().filter(|function| mappings(function).next().is_some());
        let delivery = readers.filter_map(|function| function["Timeout"].as_u64()).max().unwrap();
        for metric in &alarm["Metrics"].as_array().unwrap()[1..] {
            assert!(metric["MetricStat"]["Period"].as_u64().unwrap() >= 2 * delivery, "{metric}");
        }
        assert_eq!(alarm["EvaluationPeriods"], 1);
    }
}

#[test]
fn every_queue_has_an_alarm_and_every_alarm_tells_somebody() {
    for template in templates() {
        let alarms = resources(&template, "AWS::CloudWatch::Alarm");
        let queues = resources(&template, "AWS::SQS::Queue").into_keys().collect();
        let watched = alarms.values().filter_map(|alarm| {
            alarm["Dimensions"][0]["Value"]["!GetAtt"].as_str()?.strip_suffix(".QueueName")
        });
        let watched = watched.map(str::to_owned).collect();
        check_none(&differences(
            &watched,
            &queues,
            |queue| format!("template.yaml lacks an alarm of {queue}: copy a neighbour's"),
            |queue| format!("template.yaml has an alarm of {queue}, which is not a queue"),
        ));
        for (id, alarm) in alarms {
            assert!(alarm["AlarmActions"].is_object(), "{id} tells nobody");
            assert_eq!(alarm["AlarmActions"], alarm["OKActions"], "{id}");
            assert_eq!(alarm["TreatMissingData"], silence(&alarm), "{id}");
        }
    }
}

#[test]
fn a_deadline_is_late_in_the_console_when_its_alarm_goes_off() {
    for template in templates() {
        // A stack without deadlines has no such alarm.
        let mut alarms = resources(&template, "AWS::CloudWatch::Alarm");
        let Some(alarm) = alarms.remove("DeadlinesLate") else { continue };
        assert_eq!(alarm["Threshold"], DUE_LATE_MS);
        assert_eq!(alarm["ComparisonOperator"], "GreaterThanThreshold");
    }
}

/// The alarm's treatment of missing data.
fn silence(alarm: &Value) -> &'static str {
    let metric = &alarm["Metrics"][1]["MetricStat"]["Metric"]["MetricName"];
    match metric.as_str().or(alarm["MetricName"].as_str()).unwrap() {
        // Lambda counts each poll. A mapping that is off polls nothing, and nothing else shows that.
        "PolledEventCount" => "breaching",
        // Each sweep reports its lateness. A sweep that does not run reports nothing.
        "due_lag_ms" => "breaching",
        // SQS stops counting an idle queue. Its dead letters are still there.
        "ApproximateNumberOfMessagesVisible" => "ignore",
        // Nobody notifies an idle stack. Its parked rows and lanes are still there.
        "rows_parked" | "lanes_parked" => "ignore",
        // These are counted when something happens.
        _ => "notBreaching",
    }
}

#[test]
fn answers_with_a_separate_alarm_do_not_count_as_failed_commands() {
    for template in templates() {
        let alarms = resources(&template, "AWS::CloudWatch::Alarm");
        let metrics = alarms["CommandsFail"]["Metrics"].as_array().unwrap();
        let metric = |n: usize| (&metrics[n]["Id"], &metrics[n]["MetricStat"]["Metric"]);
        let (id, answers) = metric(1);
        assert_eq!((id, &answers["MetricName"]), (&json!("answers"), &json!("5xx")));
        let (mut expression, mut found) = ("answers".to_owned(), BTreeSet::new());
        for n in 2..metrics.len() {
            let (id, not_ready) = metric(n);
            assert_eq!(not_ready["MetricName"], "views_not_ready");
            expression += &format!(" - FILL({}, 0)", id.as_str().unwrap());
            assert_eq!(not_ready["Dimensions"][0]["Name"], "function");
            let function = not_ready["Dimensions"][0]["Value"]["!Ref"].as_str();
            found.extend(function.map(str::to_owned));
        }
        assert_eq!(metrics[0]["Expression"], expression);
        // All functions that read views for callers.
        let is_get = |event: &Value| event["Properties"]["Method"] == "GET";
        let mut readers = resources(&template, "AWS::Serverless::Function");
        // run-commands reads the answers of commands, which it always has.
        readers.remove("RunCommands");
        let events = |function: &Value| function["Events"].as_object().cloned().unwrap_or_default();
        readers.retain(|_, function| events(function).values().any(is_get));
        assert_eq!(found, readers.into_keys().collect());
        assert_eq!(alarms["RowsParked"]["MetricName"], "rows_parked");
    }
}

#[test]
fn every_alarm_is_on_the_dashboard_and_in_the_runbook() {
    for template in templates() {
        let dashboards = resources(&template, "AWS::CloudWatch::Dashboard");
        let body = dashboards["Dashboard"]["DashboardBody"]["!Sub"][0].as_str().unwrap();
        let runbook = fs::read_to_string(workspace_root().join("docs/runbook.md")).unwrap();
        let table =
            runbook.split("| alarm | go to |").nth(1).unwrap().split("\n\n").next().unwrap();
        let named: BTreeSet<&str> = table.split('`').skip(1).step_by(2).collect();
        for alarm in resources(&template, "AWS::CloudWatch::Alarm").into_keys() {
            assert!(body.contains(&format!("${{{alarm}.Arn}}")), "the dashboard lacks {alarm}");
            assert!(
                named.contains(&*alarm),
                "docs/runbook.md: its table of alarms lacks `{alarm}`"
            );
        }
    }
}

/// To CloudFormation the body is only text, so only this test checks that CloudWatch can read it.
#[test]
fn the_dashboard_is_json_and_shows_whose_trouble_it_is() {
    for template in templates() {
        let dashboards = resources(&template, "AWS::CloudWatch::Dashboard");
        let body = dashboards["Dashboard"]["DashboardBody"]["!Sub"][0].as_str().unwrap();
        let body: Value = serde_json::from_str(body).expect("JSON");
        let mut shown = BTreeMap::<String, BTreeSet<String>>::new();
        for widget in body["widgets"].as_array().unwrap() {
            let mut metric = String::new();
            for line in widget["properties"]["metrics"].as_array().into_iter().flatten() {
                let parts: Vec<_> =
                    line.as_array().unwrap().iter().filter_map(Value::as_str).collect();
                // `...` stands for all but the last part of the line above, and `.` for one part.
                if parts.len() > 2 {
                    metric = parts[1].to_owned();
                }
                let value =
                    parts.last().map(|value| value.trim_matches(['$', '{', '}']).to_owned());
                shown.entry(metric.clone()).or_default().extend(value);
            }
        }
        for Together { alarm, metric, .. } in TOGETHER {
            // The runbook explains how to find the mapping.
            if !["MappingsStopped", "BatchesGivenUp"].contains(&alarm) {
                let mut expected = watched(&template, alarm);
                // The text of a dashboard can't name a function that a condition leaves out.
                expected.retain(|id| template["Resources"][id]["Condition"].is_null());
                assert_eq!(shown[metric], expected, "the dashboard, {metric}");
            }
        }
    }
}
