//! Checks the template's roles, mappings, alarms, tables and queues.

mod adopted;
mod alarms;
mod tokens;
mod written;

use std::collections::BTreeSet;
use std::fs;

use ringfence_acceptance::{Application, applications};
use ringfence_core::LogKind;
use ringfence_local::pattern::Pattern;
use ringfence_local::workspace_root;
use ringfence_testing::template::{
    AUTOMATIONS_QUEUE, arn, check_none, mappings, resources, template,
};
use ringfence_testing::{check_functions, check_roles};
use serde_json::{Value, json};
use stack::Shop;

#[test]
fn every_role_allows_what_its_functions_need_and_no_more() {
    check_roles::<Shop>();
}

#[test]
fn every_function_has_its_part_of_the_template_and_its_samples() {
    check_functions::<Shop>();
}

/// The templates of this repository.
fn templates() -> impl Iterator<Item = Value> {
    applications().map(|application| template(&application.root))
}

/// The tables of the application's logs.
fn logs(application: &Application) -> BTreeSet<String> {
    application.stack.sources.iter().map(|log| log.facts().table.to_owned()).collect()
}

/// A mapping gives up while its stream still has the record, and keeps it in its destination. Deliveries of an outage
/// last as long as the function may run, so they end by age; crashes are counted.
#[track_caller]
fn check_kept(id: &str, function: &Value, mapping: &Value) {
    let age = mapping["MaximumRecordAgeInSeconds"].as_u64().unwrap();
    assert!(age < 24 * 3600, "{id}");
    match mapping["MaximumRetryAttempts"].as_u64() {
        None => assert_eq!(id, "ProjectViews", "what one notification brings, every other brings"),
        Some(attempts) => {
            let delivery = function["Timeout"].as_u64().unwrap() - 2; // for the answer
            assert!((attempts + 1) * delivery >= age && attempts < 100, "{id}");
        }
    }
    let kept = &mapping["DestinationConfig"]["OnFailure"]["Destination"];
    assert_eq!(*kept, arn(&format!("{id}FailedBatches")), "{id}");
}

#[test]
fn every_mapping_keeps_what_it_gives_up() {
    for template in templates() {
        let mut readers = BTreeSet::new();
        for (id, function) in resources(&template, "AWS::Serverless::Function") {
            for (_, mapping) in mappings(&function) {
                check_kept(&id, &function, mapping);
                readers.insert(id.clone());
            }
        }
        let expected = ["IndexEvents", "ProjectViews", "PublishEvents"].map(str::to_owned);
        assert_eq!(readers, BTreeSet::from(expected));
    }
}

/// An answer may wait for ten seconds. Without a limit, readers could take all concurrent functions of the account.
#[test]
fn a_parameter_switches_off_the_reserved_concurrency_of_functions_that_wait() {
    for template in templates() {
        let functions = resources(&template, "AWS::Serverless::Function");
        let (name, condition) = ("QueryViewsConcurrency", "HasQueryViewsConcurrency");
        let reserved = json!({ "!If": [condition, { "!Ref": name }, { "!Ref": "AWS::NoValue" }] });
        assert_eq!(functions["QueryViews"]["ReservedConcurrentExecutions"], reserved);
        let is_zero = json!({ "!Equals": [{ "!Ref": name }, 0] });
        assert_eq!(template["Conditions"][condition], json!({ "!Not": [is_zero] }));
        let parameter = &template["Parameters"][name];
        assert!(parameter["Default"].as_u64() > Some(0) && parameter["MinValue"] == 0);
    }
}

/// `sam deploy --parameter-overrides` would replace what the file has, so no page advises it.
#[test]
fn samconfig_has_a_line_for_each_parameter_and_dev_reserves_nothing() {
    for application in applications() {
        let text = fs::read_to_string(application.root.join("samconfig.toml")).unwrap();
        let template = template(&application.root);
        let tables =
            text.split("\n[").filter_map(|table| table.split_once("parameter_overrides]\n"));
        let mut found = BTreeSet::new();
        for (table, lines) in tables {
            let lines = lines.lines().take_while(|line| !line.is_empty());
            for (name, value) in lines.map(|line| line.split_once(" = ").unwrap()) {
                assert!(template["Parameters"].get(name).is_some(), "{table}{name}");
                found.insert((table, name, value.split(" #").next().unwrap()));
            }
        }
        assert!(
            found.contains(&("dev.deploy.parameters.", "QueryViewsConcurrency", "0")),
            "{found:?}"
        );
        assert!(!text.contains("parameter_overrides ="), "a table, so that each has a line");
    }
    for page in [
        "README.md",
        "starter/README.md",
        "docs/deploy.md",
        "docs/identity.md",
        "docs/observing.md",
    ] {
        let text = fs::read_to_string(workspace_root().join(page)).unwrap();
        let mut commands = text.split("sam deploy").skip(1);
        let flag = commands.find(|rest| {
            let command = rest.split(['`', '\n']).next().unwrap_or_default();
            command.contains("--parameter-overrides")
        });
        assert_eq!(flag, None, "{page}");
    }
}

/// The function's own lines have no `span_id`, so the subscription does not send them. The function has exactly the
/// variables that it reads.
#[test]
fn the_spans_of_the_log_are_sent_if_a_parameter_says_where_to() {
    for template in templates() {
        let condition = "HasSpansUrl";
        let is_empty = json!({ "!Equals": [{ "!Ref": "SpansUrl" }, ""] });
        assert_eq!(template["Conditions"][condition], json!({ "!Not": [is_empty] }));
        assert_eq!(template["Parameters"]["SpansUrl"]["Default"], "");
        for id in ["ForwardSpans", "ForwardSpansRole"] {
            assert_eq!(template["Resources"][id]["Condition"], condition, "{id}");
        }
        let function = &resources(&template, "AWS::Serverless::Function")["ForwardSpans"];
        let variables = function["Environment"]["Variables"].as_object().unwrap();
        let read =
            ringfence_lambda::variables::<ringfence_services::spans::ForwardSpans>(&()).required;
        assert_eq!(variables.keys().cloned().collect::<BTreeSet<_>>(), read);
        let subscription = &function["Events"]["Lines"]["Properties"];
        assert_eq!(subscription["LogGroupName"], json!({ "!Ref": "Logs" }));
        let pattern = subscription["FilterPattern"].as_str().unwrap();
        assert_eq!(pattern, "{ ($.span_id = *) && ($.sampled NOT EXISTS) }");
        let level = &template["Parameters"]["LogLevel"]["AllowedValues"];
        assert_eq!(*level, json!(["TRACE", "DEBUG", "INFO"]), "a span is of the level INFO");
    }
}

/// `ringfence --stack` finds tables, queues and buckets by the outputs.
#[test]
fn the_outputs_name_every_table_queue_and_bucket() {
    for template in templates() {
        for (kind, end) in [
            ("AWS::DynamoDB::Table", "Name"),
            ("AWS::Events::EventBus", "Name"),
            ("AWS::S3::Bucket", "Name"),
            ("AWS::SQS::Queue", "Url"),
        ] {
            for id in resources(&template, kind).into_keys() {
                let value = &template["Outputs"][format!("{id}{end}")]["Value"];
                let (own, name) = (json!({ "!Ref": id }), json!({ "!Ref": format!("{id}{end}") }));
                let expected = match kind {
                    "AWS::DynamoDB::Table" => json!({ "!If": [format!("Makes{id}"), own, name] }),
                    _ => own,
                };
                assert_eq!(*value, expected, "template.yaml: Outputs lacks {id}{end}");
            }
        }
    }
}

#[test]
fn the_streams_of_all_logs_are_read_alike() {
    for application in applications() {
        let template = template(&application.root);
        let functions = resources(&template, "AWS::Serverless::Function");
        for id in ["IndexEvents", "PublishEvents"] {
            let (mut tables, mut settings) = (BTreeSet::new(), BTreeSet::new());
            for (_, mapping) in mappings(&functions[id]) {
                let mut rest = mapping.clone();
                let stream = rest.as_object_mut().unwrap().remove("Stream").unwrap();
                let log = stream["!GetAtt"].as_str().unwrap().strip_suffix("StreamArn.Value");
                tables.insert(format!("{}Table", log.unwrap()));
                rest.as_object_mut().unwrap().remove("FilterCriteria").unwrap();
                settings.insert(rest.to_string());
            }
            assert_eq!(tables, logs(&application), "{id}");
            assert_eq!(settings.len(), 1, "{id}: {settings:#?}");
        }
    }
}

/// With the parameter `EventsOnBus` these events of the shop's DCB log go to the EventTopic, and those that it lists.
#[test]
fn events_that_no_slice_reacts_to_can_stay_off_the_bus() {
    let application = applications().find(|it| it.root == workspace_root()).unwrap();
    let template = template(&application.root);
    let parameter = &template["Parameters"]["EventsOnBus"];
    assert_eq!(parameter["Default"], "*");
    let allowed = format!("^({})$", parameter["AllowedPattern"].as_str().unwrap());
    let allowed = regex_lite::Regex::new(&allowed).unwrap();
    let is_allowed = |text: &&str| allowed.is_match(text);
    let texts = ["*", "", "A", "A,B_2", "A,", "A, B", "A B", "*,A", "A\"", "A\\", "2A"];
    assert_eq!(texts.into_iter().filter(is_allowed).collect::<Vec<_>>(), texts[..4]);
    let is_all = json!({ "!Equals": [{ "!Ref": "EventsOnBus" }, "*"] });
    assert_eq!(template["Conditions"]["PublishesAll"], is_all);
    let functions = resources(&template, "AWS::Serverless::Function");
    let stream = &functions["PublishEvents"]["Events"]["Stream"]["Properties"];
    let [all, some] = [1, 2].map(|n| &stream["FilterCriteria"]["Filters"][0]["Pattern"]["!If"][n]);
    let some = |listed: &str| {
        let [begin, end] = [0, 2].map(|n| some["!Join"][1][n].as_str().unwrap());
        format!("{begin}\"{listed}\"{end}")
    };
    let contexts = application.stack.contexts.iter().filter(|it| it.log == LogKind::Dcb);
    let types: BTreeSet<_> = contexts.flat_map(|it| it.event_types.iter()).collect();
    let going = |pattern: &str| -> Vec<String> {
        let pattern = Pattern::parse(&serde_json::from_str(pattern).unwrap()).unwrap();
        let image = |name: &str| json!({ "eventName": "INSERT", "dynamodb": { "NewImage": { "event": { "S": name } } } });
        let names = types.iter().map(|name| name.to_string());
        names.filter(|name| pattern.matches(&image(name))).collect()
    };
    assert_eq!(going(all.as_str().unwrap()).len(), types.len());
    let caused = [
        "OrderCancelled",
        "OrderPlaced",
        "ProductAdded",
        "StockMissing",
        "StockReleased",
        "StockReserved",
    ];
    assert_eq!(going(&some("")), caused);
    let other = types.iter().find(|name| !caused.iter().any(|it| it == **name)).unwrap();
    assert_eq!(going(&some(other)).len(), caused.len() + 1);
    // A pattern of Lambda has at most 4,096 bytes. In it two quotes are around each name.
    let longest = vec!["A"; usize::try_from(parameter["MaxLength"].as_u64().unwrap()).unwrap() / 2]
        .join("\",\"");
    assert!(some(&longest).len() <= 4_096);
}

/// A table that is made with fewer units than DynamoDB gives it anyway is refused.
#[test]
fn a_table_is_warm_within_the_bounds_of_dynamodb() {
    for template in templates() {
        let parameter = &template["Parameters"]["WarmWriteUnits"];
        let bounds = ["Default", "MinValue", "MaxValue"].map(|name| parameter[name].as_u64());
        assert_eq!(bounds, [Some(4_000), Some(4_000), Some(40_000)]);
        let is_default = json!({ "!Equals": [{ "!Ref": "WarmWriteUnits" }, parameter["Default"]] });
        assert_eq!(template["Conditions"]["HasWarmWriteUnits"], json!({ "!Not": [is_default] }));
    }
}

/// A parameter can name an existing table in place of each, and the outputs are such parameters for another stack.
#[test]
fn an_existing_table_can_take_the_place_of_each() {
    let account = "${AWS::Region}:${AWS::AccountId}";
    for template in templates() {
        for (id, table) in resources(&template, "AWS::DynamoDB::Table") {
            let (makes, log) = (format!("Makes{id}"), id.strip_suffix("Table").unwrap());
            let [name, stream] = ["Name", "StreamArn"].map(|end| format!("{id}{end}"));
            let is_empty = json!({ "!Equals": [{ "!Ref": name }, ""] });
            assert_eq!(template["Conditions"][&makes], is_empty, "{makes}");
            assert_eq!(template["Resources"][&id]["Condition"], makes, "{id}");
            let attribute = |of: &str| json!({ "!GetAtt": format!("{id}.{of}") });
            let other = format!("arn:${{AWS::Partition}}:dynamodb:{account}:table/${{{name}}}");
            let arn = json!({ "!If": [makes, attribute("Arn"), { "!Sub": other }] });
            let parameters = resources(&template, "AWS::SSM::Parameter");
            assert_eq!(parameters[&format!("{id}Arn")]["Value"], arn, "{id}");
            if table.get("StreamSpecification").is_none() {
                continue;
            }
            let arn = json!({ "!If": [makes, attribute("StreamArn"), { "!Ref": stream }] });
            assert_eq!(parameters[&format!("{log}StreamArn")]["Value"], arn, "{id}");
            let output = json!({ "!GetAtt": format!("{log}StreamArn.Value") });
            assert_eq!(template["Outputs"][&stream]["Value"], output, "{stream}");
            let rules = template["Rules"]["Streams"]["Assertions"].as_array().unwrap();
            let named = json!({ "!Not": [{ "!Equals": [{ "!Ref": stream }, ""] }] });
            let assert = json!({ "!Or": [is_empty, named] });
            assert!(rules.iter().any(|rule| rule["Assert"] == assert), "Rules lacks {stream}");
        }
    }
}

#[test]
fn every_table_is_kept_protected_and_can_be_restored() {
    for application in applications() {
        let template = template(&application.root);
        let tables = resources(&template, "AWS::DynamoDB::Table");
        let keys = usize::from(application.stack.is_personal());
        let others = "the logs, the index, the views and the keys of personal data";
        assert_eq!(tables.len(), logs(&application).len() + 2 + keys, "{others}");
        for (id, table) in tables {
            let resource = &template["Resources"][&id];
            assert_eq!(resource["DeletionPolicy"], "RetainExceptOnCreate", "{id}");
            assert_eq!(resource["UpdateReplacePolicy"], "Retain", "{id}");
            assert_eq!(table["DeletionProtectionEnabled"], true, "{id}");
            let recovery = &table["PointInTimeRecoverySpecification"];
            assert_eq!(recovery["PointInTimeRecoveryEnabled"], true, "{id}");
            assert_eq!(table["BillingMode"], "PAY_PER_REQUEST", "{id}");
            let by =
                |key: Value| json!({ "SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": key });
            let none = json!({ "!Ref": "AWS::NoValue" });
            let key = match &*id {
                "KeyTable" => {
                    let [own, other] = [
                        json!({ "!GetAtt": "PersonalKey.Arn" }),
                        json!({ "!Ref": "PersonalKeyArn" }),
                    ];
                    by(json!({ "!If": ["MakesPersonalKey", own, other] }))
                }
                _ => json!({ "!If": ["HasTableKey", by(json!({ "!Ref": "TableKeyArn" })), none] }),
            };
            assert_eq!(table["SSESpecification"], key, "{id}");
        }
    }
}

#[test]
fn events_that_an_automation_fails_on_go_to_the_queue_of_automations() {
    for template in templates() {
        let queue = format!("!GetAtt {AUTOMATIONS_QUEUE}.Arn");
        let mut lines = Vec::new();
        for (id, function) in resources(&template, "AWS::Serverless::Function") {
            let events = function["Events"].as_object().into_iter().flatten();
            // The next notification does the same work.
            let is_rule = |(name, event): &(&String, &Value)| {
                event["Type"] == "EventBridgeRule" && *name != "Notified"
            };
            let rules: Vec<_> = events.filter(is_rule).collect();
            for (name, rule) in &rules {
                if rule["Properties"]["DeadLetterConfig"]
                    != json!({ "Arn": arn(AUTOMATIONS_QUEUE) })
                {
                    let line = format!("`DeadLetterConfig: {{ Arn: {queue} }}`");
                    lines.push(format!("template.yaml: the event {name} of {id} lacks {line}"));
                }
            }
            let kept = json!({ "Type": "SQS", "Destination": arn(AUTOMATIONS_QUEUE) });
            let kept = json!({ "DestinationConfig": { "OnFailure": kept } });
            if !rules.is_empty() && function["EventInvokeConfig"] != kept {
                lines.push(format!(
                    "template.yaml: {id} lacks `EventInvokeConfig: {{ DestinationConfig: {{ OnFailure: \
                     {{ Type: SQS, Destination: {queue} }} }} }}`"
                ));
            }
        }
        check_none(&lines);
    }
}

#[test]
fn the_queue_of_automations_takes_dead_letters_only_from_rules_of_the_event_topic() {
    for template in templates() {
        let policies = resources(&template, "AWS::SQS::QueuePolicy");
        let names: Vec<_> = policies.keys().collect();
        if names.is_empty() {
            let queues = resources(&template, "AWS::SQS::Queue");
            assert!(!queues.contains_key(AUTOMATIONS_QUEUE), "a queue that takes nothing");
            continue;
        }
        assert_eq!(names, [&format!("{AUTOMATIONS_QUEUE}Policy")], "Lambda sends with a role");
        let policy = &policies[names[0]];
        assert_eq!(policy["Queues"], json!([{ "!Ref": AUTOMATIONS_QUEUE }]));
        let account = "${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}";
        let rules = format!("arn:{account}:rule/${{EventTopic}}/*");
        let expected = json!([{
            "Effect": "Allow",
            "Principal": { "Service": "events.amazonaws.com" },
            "Action": "sqs:SendMessage",
            "Resource": arn(AUTOMATIONS_QUEUE),
            "Condition": { "ArnLike": { "aws:SourceArn": { "!Sub": rules } } },
        }]);
        assert_eq!(policy["PolicyDocument"]["Statement"], expected);
    }
}
