use std::time::Duration;

use serde_json::json;

use super::*;

const QUEUES: &str = "http://127.0.0.1:1";

const SHOP: &str = r#"
Parameters:
  Stage: { Type: String, Default: dev }
  Reserved: { Type: Number, Default: 3 }
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
  IsReserved: !Not [!Equals [!Ref Reserved, 0]]
Globals:
  Function:
    Timeout: 10
    MemorySize: 256
    LoggingConfig: { LogFormat: JSON, ApplicationLogLevel: DEBUG }
    Environment:
      Variables: { EVENT_TABLE: !Ref Events, DECISION_CACHE_ENTRIES: 100, AWS_CA_BUNDLE: /opt/a.pem }
Resources:
  Events:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema: [{ AttributeName: id, KeyType: HASH }]
      DeletionProtectionEnabled: !If [IsProd, true, false]
      StreamSpecification: { StreamViewType: NEW_IMAGE }
  Rows:
    Type: AWS::DynamoDB::Table
    Properties: { KeySchema: [{ AttributeName: view, KeyType: HASH }] }
  Topic:
    Type: AWS::Events::EventBus
    Properties: { Name: !Sub "${AWS::StackName}-topic" }
  Dead: { Type: AWS::SQS::Queue }
  Lost: { Type: AWS::S3::Bucket }
  PlaceOrder:
    Type: AWS::Serverless::Function
    Metadata: { BuildMethod: rust-cargolambda, BuildProperties: { Binary: place-order } }
    Properties:
      EventInvokeConfig: { MaximumRetryAttempts: 1 }
      ReservedConcurrentExecutions: !If [IsReserved, !Ref Reserved, !Ref "AWS::NoValue"]
      Events:
        Api: { Type: HttpApi, Properties: { Path: /ordering/place-order, Method: post } }
        Own: { Type: HttpApi, Properties: { Path: /own, Method: get, Auth: { AuthorizationScopes: [a, b] } } }
        Open: { Type: HttpApi, Properties: { Path: /open, Method: get, Auth: { Authorizer: NONE } } }
  Forward:
    Type: AWS::Serverless::Function
    Condition: IsProd
    Metadata: { BuildMethod: rust-cargolambda, BuildProperties: { Binary: forward-spans } }
    Properties: { Events: { Lines: { Type: CloudWatchLogs, Properties: { LogGroupName: all } } } }
  Publish:
    Type: AWS::Serverless::Function
    Metadata: { BuildMethod: rust-cargolambda, BuildProperties: { Binary: publish-events } }
    Properties:
      Timeout: 60
      Environment:
        Variables: { EVENT_BUS: !Ref Topic, DEAD_LETTER_QUEUE_URL: !Ref Dead,
                     DECISION_CACHE_ENTRIES: !Join ["-", [a, !Join ["+", !Split [",", "b,c"]]]] }
      Events:
        Stream:
          Type: DynamoDB
          Properties:
            Stream: !GetAtt Events.StreamArn
            StartingPosition: TRIM_HORIZON
            BatchSize: 50
            MaximumRetryAttempts: -1
            MaximumRecordAgeInSeconds: 3600
            BisectBatchOnFunctionError: true
            FunctionResponseTypes: [ReportBatchItemFailures]
            FilterCriteria:
              Filters:
                - Pattern: '{"eventName":["INSERT"]}'
            DestinationConfig:
              OnFailure: { Type: S3, Destination: !GetAtt Lost.Arn }
        Sweep:
          Type: ScheduleV2
          Properties:
            { ScheduleExpression: rate(5 minutes), OmitName: true, RetryPolicy: { MaximumRetryAttempts: 0 } }
  OnOrder:
    Type: AWS::Events::Rule
    Properties:
      EventBusName: !Ref Topic
      EventPattern: { source: [ordering], detail-type: [OrderPlaced] }
      Targets:
        - Id: place-order
          Arn: !GetAtt PlaceOrder.Arn
          DeadLetterConfig: { Arn: !GetAtt Dead.Arn }
          RetryPolicy: { MaximumRetryAttempts: 3, MaximumEventAgeInSeconds: 60 }
  Kept: # on the default bus, whose events nothing sends here
    Type: AWS::Events::Rule
    Properties: { EventPattern: { source: [aws.s3] } }
"#;

fn shop() -> Model {
    let template = Template::parse(SHOP).expect("a template");
    template.model(QUEUES).expect("a model")
}

#[test]
fn function_gets_globals_and_its_own() {
    let model = shop();
    let publish = model.functions.iter().find(|f| f.binary == "publish-events").expect("it");
    assert_eq!(publish.timeout, Duration::from_secs(60));
    assert_eq!(publish.memory_mb, 256);
    assert_eq!(publish.log_level.as_deref(), Some("DEBUG"));
    let variables: Vec<_> =
        publish.environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(
        variables,
        [
            ("DEAD_LETTER_QUEUE_URL", "http://127.0.0.1:1/000000000000/ringfence-local-Dead"),
            ("DECISION_CACHE_ENTRIES", "a-b+c"),
            ("EVENT_BUS", "ringfence-local-topic"),
            ("EVENT_TABLE", "ringfence-local-Events"),
        ]
    );
    let place = model.functions.iter().find(|f| f.binary == "place-order").expect("it");
    assert_eq!(place.retries.attempts_max, Some(1));
    assert_eq!(place.timeout, Duration::from_secs(10));
    assert_eq!((place.concurrency_max, publish.concurrency_max), (Some(3), None));
}

#[test]
fn a_key_of_kms_is_a_file_of_the_stack_here() {
    let text = SHOP.replace("EVENT_TABLE: !Ref Events", "KEY: !GetAtt Key.Arn");
    let text = text.replace("Resources:\n", "Resources:\n  Key: { Type: AWS::KMS::Key }\n")
        + "Outputs: { Key: { Value: !GetAtt Key.Arn } }\n";
    let model = Template::parse(&text).expect("a template").model(QUEUES).expect("a model");
    let model = model.with_keys_in(std::path::Path::new("/data"));
    let file = "file:/data/ringfence-local-Key";
    assert!(model.functions.iter().all(|function| function.environment["KEY"] == file));
    assert_eq!(model.outputs["Key"], file);
}

#[test]
fn routes_mappings_schedules_and_rules_are_read() {
    let model = shop();
    let route = &model.routes[0];
    assert_eq!((route.method.as_str(), route.path.as_str()), ("POST", "/ordering/place-order"));
    assert_eq!(route.function, "place-order");
    let scopes =
        |of: &Model| of.routes.iter().map(|it| it.token_scopes.clone()).collect::<Vec<_>>();
    assert_eq!(scopes(&model), [None, None, None]);
    let jwt = "Authorizers: { Jwt: { JwtConfiguration: { issuer: !Ref Nowhere } } }, DefaultAuthorizer: Jwt";
    let api = "  Api: { Type: AWS::Serverless::HttpApi, Properties: { Auth: {";
    let of_auth = |auth: &str| {
        let template = Template::parse(&format!("{SHOP}{api} {auth} }} }} }}\n"));
        scopes(&template.expect("a template").model(QUEUES).expect("a model"))
    };
    let of_own = || Some(["a", "b"].map(str::to_owned).to_vec());
    assert_eq!(of_auth(jwt), [Some(vec![]), None, of_own()]);
    assert_eq!(
        of_auth("DefaultAuthorizer: AWS_IAM, EnableIamAuthorizer: true"),
        [None, None, None]
    );

    let tables: Vec<_> = model.tables.iter().map(|t| (t.id.as_str(), t.name.as_str())).collect();
    assert_eq!(tables, [("Events", "ringfence-local-Events"), ("Rows", "ringfence-local-Rows")]);
    assert_eq!(model.buckets, ["ringfence-local-Lost"]);

    let mapping = &model.mappings[0];
    assert_eq!(mapping.table, "ringfence-local-Events");
    assert_eq!((mapping.function.as_str(), mapping.batch_size), ("publish-events", 50));
    assert_eq!(mapping.retries.attempts_max, None);
    assert_eq!(mapping.retries.age_max, Some(Duration::from_secs(3600)));
    assert!(mapping.bisect && mapping.report_item_failures);
    assert_eq!(mapping.on_failure.as_deref(), Some("arn:aws:s3:::ringfence-local-Lost"));
    assert!(mapping.filters[0].matches(&json!({ "eventName": "INSERT" })));

    let schedule = &model.schedules[0];
    let (name, expression) = (&*schedule.name, &*schedule.expression);
    assert_eq!((name, expression), ("PublishSweep", "rate(5 minutes)"));
    assert_eq!(schedule.target.function, "publish-events");
    assert_eq!(schedule.target.retries.attempts_max, Some(0));

    assert_eq!(model.rules.len(), 1, "nothing sends events of AWS");
    let rule = &model.rules[0];
    assert_eq!(rule.bus, "ringfence-local-topic");
    assert!(rule.pattern.matches(&json!({ "source": "ordering", "detail-type": "OrderPlaced" })));
    assert_eq!(rule.targets[0].function, "place-order");
    assert_eq!(rule.targets[0].retries.attempts_max, Some(3));
    let queue = rule.targets[0].dead_letter_queue.as_deref();
    assert_eq!(queue, Some("arn:aws:sqs:us-east-1:000000000000:ringfence-local-Dead"));

    let mut template = Template::parse(SHOP).expect("a template");
    template.switch_rules_off();
    let off = template.model(QUEUES).expect("a model");
    assert!(off.rules_are_off && off.rules.is_empty() && off.schedules.is_empty());
    assert_eq!((off.mappings.len(), model.rules_are_off), (model.mappings.len(), false));
}

#[test]
fn conditions_are_decided_by_the_values_for_this_machine_and_else_by_the_defaults() {
    let names = |template: &Template| {
        let functions = template.model(QUEUES).expect("a model").functions.into_iter();
        functions.map(|function| function.binary).collect::<Vec<_>>()
    };
    let only = |stage: &str| {
        let condition = "  Publish:\n    Condition: IsProd\n";
        format!(
            "Metadata: {{ Local: {{ Stage: {stage} }} }}\n{}",
            SHOP.replace("  Publish:\n", condition)
        )
    };
    let [prod, mut test] =
        ["prod", "test"].map(|stage| Template::parse(&only(stage)).expect("YAML"));
    assert!(names(&prod).contains(&"publish-events".to_owned()));
    assert!(!names(&test).contains(&"publish-events".to_owned()));
    test.set("Stage=prod").expect("a parameter");
    assert_eq!(names(&test), names(&prod));
    test.set("Stage=").expect("a parameter");
    assert_eq!(names(&test.whole()), names(&prod));
    let mut none = Template::parse(SHOP).expect("a template");
    let error = none.set("Stages=prod").expect_err("no parameter").to_string();
    let (said, known) = error.split_once("; it has ").expect("the parameters");
    assert_eq!(said, "the template has no parameter Stages");
    assert!(known.split(", ").any(|name| name == "Stage"), "{known}");
    let error = none.set("Stage").expect_err("no value").to_string();
    assert_eq!(error, "Stage: write NAME=VALUE; the value may be empty");

    let template = Template::parse(SHOP).expect("a template");
    let table = template.table("Events").expect("a table");
    assert_eq!(table["DeletionProtectionEnabled"], false);
    let none = template.table("Lost").expect_err("a bucket is not a table");
    assert_eq!(none.to_string(), "the template has no table Lost");
}

/// A parameter names its stream by its ARN, and its properties must fit.
#[test]
fn a_table_that_a_parameter_names_takes_the_place_of_one() {
    let text = SHOP
        .replace("  Stage:", "  EventsName: { Type: String, Default: \"\" }\n  EventsStreamArn: { Type: String, Default: \"\" }\n  Stage:")
        .replace(
            "Conditions:",
            "Rules:\n  Streams:\n    Assertions:\n      - Assert: !Or [!Equals [!Ref EventsName, \"\"], !Not [!Equals [!Ref EventsStreamArn, \"\"]]]\n        \
             AssertDescription: EventsStreamArn is lacking.\nConditions:\n  Makes: !Equals [!Ref EventsName, \"\"]",
        )
        .replace("  Events:\n    Type: AWS::DynamoDB::Table\n", "  StreamArn:\n    Type: AWS::SSM::Parameter\n    \
             Properties: { Type: String, Value: !If [Makes, !GetAtt Events.StreamArn, !Ref EventsStreamArn] }\n  \
             Events:\n    Type: AWS::DynamoDB::Table\n    Condition: Makes\n")
        .replace("EVENT_TABLE: !Ref Events,", "EVENT_TABLE: !If [Makes, !Ref Events, !Ref EventsName],")
        .replace("Stream: !GetAtt Events.StreamArn", "Stream: !GetAtt StreamArn.Value");
    let mut template = Template::parse(&text).expect("a template");
    let seen = |template: &Template| {
        let model = template.model(QUEUES)?;
        let table = model.table("Events").expect("a table").clone();
        let function = &model.functions[0].environment["EVENT_TABLE"];
        assert_eq!((function, &model.mappings[0].table), (&table.name, &table.name));
        assert_eq!(table.properties["KeySchema"][0]["AttributeName"], "id");
        Ok::<_, TemplateError>((table.name, table.instead_of))
    };
    let own = "ringfence-local-Events".to_owned();
    assert_eq!(seen(&template).expect("a model"), (own.clone(), None));
    template.set("EventsName=theirs").expect("a parameter");
    let lacking = seen(&template).expect_err("a stream is lacking");
    assert_eq!(lacking.to_string(), "Streams: EventsStreamArn is lacking.");
    let arn =
        "arn:aws:dynamodb:eu-central-1:123456789012:table/theirs/stream/2026-11-26T00:00:00.000";
    template.set(&format!("EventsStreamArn={arn}")).expect("a parameter");
    assert_eq!(seen(&template).expect("a model"), ("theirs".to_owned(), Some(own)));
}

#[track_caller]
fn check_refused(from: &str, to: &str, message: &str) {
    assert!(SHOP.contains(from), "{from}");
    let template = Template::parse(&SHOP.replace(from, to)).expect("a template");
    let error = template.model(QUEUES).err().expect("a refusal");
    let text = ringfence_core::chain(&error);
    assert!(text.contains(message), "{text}");
}

#[test]
fn a_part_that_is_not_understood_is_refused_by_name() {
    let value = "!Ref Topic, DEAD";
    check_refused(value, "!ImportValue x, DEAD", "Publish: Environment.Variables: not understood");
    check_refused(value, "!Ref Nowhere, DEAD", "a reference to Nowhere");
    check_refused("Type: HttpApi", "Type: Schedule", "PlaceOrder: Properties.Events.Api");
    check_refused("Type: HttpApi", "Type: Schedule", "Type Schedule, write ScheduleV2");
    check_refused(
        "OmitName: true",
        "OmitName: false",
        "each stack would have, write OmitName: true",
    );
    check_refused(
        "rate(5 minutes)",
        "rate(5 weeks)",
        "Publish: Properties.Events.Sweep.Properties",
    );
    check_refused(
        "ScheduleExpression:",
        "Input: '{}', ScheduleExpression:",
        "unknown field `Input`",
    );
    check_refused(
        "Method: post",
        "Method: post, TimeoutInMillis: 9",
        "unknown field `TimeoutInMillis`",
    );
    check_refused("Method: post", "Method: fetch", "the method FETCH: a route has one of DELETE,");
    for path in ["orders", "/a/{b+}/c"] {
        check_refused("Path: /own", &format!("Path: '{path}'"), &format!("the path {path}: "));
    }
    check_refused("Path: /own", "Path: /open", "a second route GET /open");
    check_refused("Path: /own", "Path: $default", "it takes all methods, write Method: ANY");
    let old = "Method: post, PayloadFormatVersion: '1.0'";
    check_refused("Method: post", old, "unknown variant `1.0`, expected `2.0`");
    check_refused(
        "[IsReserved, !Ref Reserved,",
        "[IsReserved, 0,",
        "PlaceOrder: ReservedConcurrentExecutions",
    );
    let queue = "DeadLetterQueue: { Type: SQS, TargetArn: !GetAtt Dead.Arn }\n      Timeout: 60";
    check_refused("Timeout: 60", queue, "Publish: Properties.DeadLetterQueue");
    let schedule = "Dead: { Type: AWS::SQS::Queue }\n  Daily: { Type: AWS::Scheduler::Schedule }";
    check_refused("Dead: { Type: AWS::SQS::Queue }", schedule, "Daily: Type");
    check_refused("TRIM_HORIZON", "LATEST", "unknown variant `LATEST`");
    check_refused(
        "!GetAtt Events.StreamArn",
        "!GetAtt Rows.StreamArn",
        "is the stream of no table",
    );
    check_refused("BatchSize: 50", "TumblingWindowInSeconds: 5", "TumblingWindowInSeconds");
    check_refused("- Id: place-order", "- Input: '{}'\n          Id: x", "unknown field `Input`");
    check_refused("[OrderPlaced]", "[{ wildcard: x }]", "OnOrder: EventPattern: not understood");
}

#[test]
fn a_function_whose_condition_does_not_hold_is_not_there() {
    let binaries = |template: &str| {
        let model = Template::parse(template).and_then(|template| template.model(QUEUES));
        let functions = model.expect("a model").functions.into_iter();
        functions.map(|function| function.binary).collect::<Vec<_>>()
    };
    assert_eq!(binaries(SHOP), ["place-order", "publish-events"]);
    let prod = SHOP.replace("Default: dev", "Default: prod");
    assert_eq!(binaries(&prod), ["forward-spans", "place-order", "publish-events"]);
    let unknown = SHOP.replace("Condition: IsProd", "Condition: IsElsewhere");
    let error = Template::parse(&unknown).and_then(|template| template.model(QUEUES)).err();
    let error = error.expect("a refusal").to_string();
    assert!(error.contains("IsElsewhere"), "{error}");
}
