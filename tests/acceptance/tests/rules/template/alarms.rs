//! One alarm for each kind of trouble, on few metrics: each costs money every month.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use ringfence_acceptance::applications;
use ringfence_local::workspace_root;
use ringfence_views::DUE_LATE_MS;
use serde_json::{Value, json};

use ringfence_testing::template::{check_none, differences, mappings, resources};

use crate::template::templates;

/// The metrics of all alarms, by the folder of the stack. CloudWatch charges for each metric that an alarm reads.
const METRICS: [(&str, usize); 3] = [("", 19), ("projects", 18), ("starter", 16)];

#[test]
fn alarms_read_few_metrics() {
    for (template, (folder, most)) in templates().zip(METRICS) {
        let alarms = resources(&template, "AWS::CloudWatch::Alarm");
        let metrics = |alarm: &Value| match alarm["Metrics"].as_array() {
            Some(all) => all.iter().filter(|one| one["MetricStat"].is_object()).count(),
            None => 1,
        };
        assert_eq!(alarms.values().map(metrics).sum::<usize>(), most, "{folder}");
        // Each mapping would have six more.
        for (id, function) in resources(&template, "AWS::Serverless::Function") {
            for (name, mapping) in mappings(&function) {
                assert!(mapping["MetricsConfig"].is_null(), "{id}{name}");
            }
        }
    }
}

/// Whether CloudWatch's filter takes a line. It knows `||` and `&&`, and the terms `$.a.b = *` and `$.a.b = "text*"`.
fn takes(filter: &str, line: &Value) -> bool {
    let filter = filter.trim_matches(['{', '}', ' ']);
    let is_true = |term: &str| {
        let (path, expected) = term.split_once(" = ").unwrap();
        let pointer = path.trim().strip_prefix('$').unwrap().replace('.', "/");
        let value = line.pointer(&pointer);
        match expected.trim() {
            "*" => value.is_some(),
            text => {
                let text = text.trim_matches('"');
                let found = value.and_then(Value::as_str);
                found.is_some_and(|found| match text.strip_suffix('*') {
                    Some(begin) => found.starts_with(begin),
                    None => found == text,
                })
            }
        }
    };
    filter.split("||").any(|all| all.trim_matches(['(', ')', ' ', '\n']).split("&&").all(is_true))
}

/// The lines about failures, and the alarm of each.
#[test]
fn a_line_about_a_failure_reaches_its_alarm_and_other_lines_reach_none() {
    let report = |status: &str, kind: Option<&str>| {
        let record =
            json!({ "requestId": "r", "metrics": {}, "status": status, "errorType": kind });
        json!({ "time": "2026-01-01T00:00:00Z", "type": "platform.report", "record": record })
    };
    let lines = [
        // A function that is not a slice answers with an error, or can't start.
        (json!({ "level": "ERROR", "failed_function": "index-events" }), Some("FunctionsFail")),
        (report("timeout", None), Some("FunctionsFail")),
        (report("error", Some("Runtime.ExitError")), Some("FunctionsFail")),
        (report("error", Some("Runtime.OutOfMemory")), Some("FunctionsFail")),
        (json!({ "level": "WARN", "stream_lag_ms": 3_600_001 }), Some("StreamsBehind")),
        (report("success", None), None),
        // A slice tells its caller about a rejection in this way, if the caller asks for that.
        (report("error", Some("rejected")), None),
        (json!({ "level": "ERROR", "slice": "place-order", "outcome": "internal" }), None),
        (json!({ "level": "ERROR", "message": "the invocation failed" }), None),
    ];
    let own = json!({ "!Sub": "Ringfence/${AWS::StackName}" });
    for template in templates() {
        let alarms = resources(&template, "AWS::CloudWatch::Alarm");
        let filters = resources(&template, "AWS::Logs::MetricFilter");
        for (line, expected) in &lines {
            let taken = filters.values().filter(|filter| {
                assert_eq!(filter["LogGroupName"], json!({ "!Ref": "Logs" }));
                takes(filter["FilterPattern"].as_str().unwrap(), line)
            });
            let found = taken.flat_map(|filter| {
                let metric = &filter["MetricTransformations"][0];
                // Without a value for other lines, nothing is sent, and nothing is charged.
                assert!(metric["DefaultValue"].is_null());
                assert_eq!(metric["MetricNamespace"], own, "other stacks have other metrics");
                let reads = alarms.iter().filter(|(_, alarm)| {
                    alarm["Namespace"] == own && alarm["MetricName"] == metric["MetricName"]
                });
                reads.map(|(id, _)| &**id).collect::<Vec<_>>()
            });
            assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(*expected), "{line}");
        }
        assert_eq!(alarms["StreamsBehind"]["Threshold"], 0, "a line is written after an hour");
        let levels = &template["Globals"]["Function"]["LoggingConfig"];
        assert_eq!(levels["SystemLogLevel"], "WARN", "reports of failures are of this level");
    }
}

/// The ids of an alarm's dimension, which are values of `!Ref`.
fn dimension<'a>(alarm: &'a Value, name: &str) -> Option<&'a str> {
    let of = &alarm["Dimensions"][0];
    assert_eq!(of["Name"], name);
    of["Value"]["!Ref"].as_str()
}

#[test]
fn every_mapping_is_looked_at_and_every_batch_that_is_given_up_is_counted() {
    for template in templates() {
        let alarms = resources(&template, "AWS::CloudWatch::Alarm");
        let functions = resources(&template, "AWS::Serverless::Function");
        let of = |function: &(String, Value)| {
            let of = mappings(&function.1).map(|(name, mapping)| {
                let kept =
                    mapping["DestinationConfig"]["OnFailure"]["Destination"]["!GetAtt"].as_str();
                let bucket = kept.map(|kept| kept.strip_suffix(".Arn").unwrap().to_owned());
                (format!("{}{name}", function.0), bucket)
            });
            of.collect::<Vec<_>>()
        };
        let all: Vec<_> = functions.into_iter().flat_map(|function| of(&function)).collect();
        let expected: BTreeSet<_> = all.iter().map(|(mapping, _)| mapping.clone()).collect();

        let stopped = &alarms["MappingsStopped"];
        assert_eq!(
            (&stopped["Namespace"], &stopped["MetricName"]),
            (&json!("AWS/States"), &json!("ExecutionsSucceeded"))
        );
        let machines = resources(&template, "AWS::Serverless::StateMachine");
        let machine = &machines[dimension(stopped, "StateMachineArn").unwrap()];
        let look = &machine["Events"]["Look"]["Properties"];
        // The list may give another mapping in place of one that a condition leaves out.
        let input = look["Input"]["!Sub"].as_str().or(look["Input"]["!Sub"][0].as_str()).unwrap();
        let input: Vec<String> = serde_json::from_str(input).unwrap();
        let looked = input.iter().map(|id| id.trim_matches(['$', '{', '}']).to_owned()).collect();
        check_none(&differences(
            &looked,
            &expected,
            |id| format!("nothing looks at {id}"),
            |id| format!("{id} is no mapping"),
        ));
        let arns = machine["Policies"][0]["Statement"][0]["Resource"].as_array().unwrap();
        assert_eq!(arns.len(), input.len());
        let alarm = ["Period", "EvaluationPeriods"].map(|name| stopped[name].as_u64().unwrap());
        assert_eq!(
            (look["ScheduleExpression"].as_str(), alarm),
            (Some("rate(10 minutes)"), [1_800, 2])
        );

        let given_up = &alarms["BatchesGivenUp"];
        assert_eq!(
            (&given_up["Namespace"], &given_up["MetricName"]),
            (&json!("AWS/Events"), &json!("MatchedEvents"))
        );
        let rules = resources(&template, "AWS::Events::Rule");
        let rule = &rules[dimension(given_up, "RuleName").unwrap()];
        assert!(rule["EventBusName"].is_null(), "the events of S3 are on the default bus");
        let names = rule["EventPattern"]["detail"]["bucket"]["name"].as_array().unwrap();
        let counted = names.iter().map(|name| name["!Ref"].as_str().unwrap().to_owned()).collect();
        let kept: BTreeSet<_> = all.into_iter().filter_map(|(_, bucket)| bucket).collect();
        check_none(&differences(
            &counted,
            &kept,
            |id| format!("nothing counts {id}"),
            |id| format!("{id} keeps no batches"),
        ));
        for bucket in kept {
            let bucket = &template["Resources"][&bucket]["Properties"];
            let tells = &bucket["NotificationConfiguration"]["EventBridgeConfiguration"];
            assert_eq!(tells["EventBridgeEnabled"], true);
        }

        // Batches that project-views gives up are notifications. The next one does their work.
        let lost = alarms["BatchesLost"]["Metrics"].as_array().unwrap();
        let of =
            |one: &Value| one["MetricStat"]["Metric"]["Dimensions"][0]["Value"]["!Ref"].clone();
        let lost: Vec<_> = lost[1..].iter().map(of).collect();
        assert_eq!(lost, [json!("PublishEvents"), json!("IndexEvents")]);
    }
}

/// A function that waits out an outage says once in a delivery how late its records are.
#[test]
fn the_lateness_of_a_stream_needs_to_be_reported_once() {
    for template in templates() {
        let alarm = &resources(&template, "AWS::CloudWatch::Alarm")["StreamsBehind"];
        let functions = resources(&template, "AWS::Serverless::Function");
        let readers = functions.values().filter(|function| mappings(function).next().is_some());
        let delivery = readers.filter_map(|function| function["Timeout"].as_u64()).max().unwrap();
        assert!(alarm["Period"].as_u64().unwrap() >= 2 * delivery);
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
        let stopped = &alarms["DeadlinesStopped"];
        assert_eq!(dimension(stopped, "FunctionName"), Some("FireDeadlines"));
    }
}

/// The alarm's treatment of missing data.
fn silence(alarm: &Value) -> &'static str {
    match alarm["MetricName"].as_str() {
        // These count runs on a schedule. If nothing runs, nothing is counted.
        Some("ExecutionsSucceeded" | "Invocations") => "breaching",
        // SQS stops counting an idle queue. Its dead letters are still there.
        Some("ApproximateNumberOfMessagesVisible") => "ignore",
        // Nobody notifies an idle stack. Its parked rows and lanes are still there.
        Some("rows_parked" | "lanes_parked") => "ignore",
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
        assert_eq!(template["Resources"]["Dashboard"]["Condition"], "HasDashboard");
        assert_eq!(template["Parameters"]["ShowDashboard"]["Default"], "false", "it costs money");
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
        let slices: BTreeSet<_> = applications()
            .flat_map(|of| of.stack.slices().map(|(_, slice)| slice.name).collect::<Vec<_>>())
            .collect();
        for (id, function) in resources(&template, "AWS::Serverless::Function") {
            let resource = &template["Resources"][&id];
            // The text of a dashboard can't name a function that a condition leaves out.
            if !resource["Condition"].is_null() {
                continue;
            }
            let binary = resource["Metadata"]["BuildProperties"]["Binary"].as_str().unwrap();
            let reads = mappings(&function).next().is_some();
            for (metric, is_shown) in [
                ("Errors", !slices.contains(binary)),
                ("IteratorAge", reads),
                ("DestinationDeliveryFailures", reads && id != "ProjectViews"),
            ] {
                assert_eq!(shown[metric].contains(&id), is_shown, "the dashboard, {metric}, {id}");
            }
        }
    }
}
