//! The output of `ringfence template`, and the parts that it keeps.

use std::collections::BTreeSet;
use std::fs;

use ringfence_acceptance::{Application, applications};
use ringfence_new::marks::{Section, sealed, sections};
use ringfence_template::written::{StackPlace, adopted, edits, written};
use serde_json::{Value, json};

/// The most lines outside of the marks, by the folder of the stack. People maintain those.
const BY_HAND_MAX: [(&str, usize); 3] = [("", 150), ("projects", 150), ("starter", 60)];

fn read(application: &Application) -> (String, StackPlace) {
    let text = fs::read_to_string(application.root.join("template.yaml")).unwrap();
    (text, StackPlace::of(&application.root))
}

fn json_of(text: &str) -> Value {
    serde_json::to_value(serde_yaml_ng::from_str::<serde_yaml_ng::Value>(text).unwrap()).unwrap()
}

fn starter() -> Application {
    applications().last().unwrap()
}

#[test]
fn every_template_is_current_and_little_of_it_is_kept_by_hand() {
    for (application, (folder, most)) in applications().zip(BY_HAND_MAX) {
        let (text, place) = read(&application);
        let fresh = written(&text, &application.stack, &place, None).unwrap();
        assert_eq!(edits(&text, &fresh).unwrap(), [""; 0]);
        assert!(
            fresh == text,
            "{folder}/template.yaml: `UPDATE=1 cargo test` writes what follows from the list"
        );
        let mut is_inside = false;
        let by_hand = text.lines().filter(|line| {
            let was_inside = is_inside;
            is_inside = (is_inside || line.starts_with("  # --- written by"))
                && !line.starts_with("  # --- end ");
            !was_inside && !is_inside
        });
        let count = by_hand.count();
        assert!(count <= most, "{folder}/template.yaml has {count} lines by hand, at most {most}");
    }
}

#[test]
fn an_edit_between_the_marks_is_named_with_the_line_that_keeps_it_and_can_be_kept() {
    let application = starter();
    let (text, place) = read(&application);
    let write = |text: &str| written(text, &application.stack, &place, None);
    let edited = text
        .replacen(
            "      Role: !GetAtt DcbLogRole.Arn\n",
            "      Role: !GetAtt DcbLogRole.Arn\n      Timeout: 5\n",
            1,
        )
        .replacen("    Default: 30\n", "    Default: 90\n", 1)
        .replacen("  ApiLogs:\n", "  Mine:\n    Type: AWS::S3::Bucket\n\n  ApiLogs:\n", 1)
        .replacen("OrderTaken", "OrderShipped", 1);
    let lines = edits(&edited, &write(&edited).unwrap()).unwrap();
    let expected = [
        "Default of LogRetentionDays: write `LogRetentionDays: { Default: 90 }` below `Ringfence:` in the section Metadata",
        "Resources: Mine does not follow from the list: move it below the closing mark of Resources",
        "Timeout of OfferProduct: write `OfferProduct: { Timeout: 5 }` below `Ringfence:` in the section Metadata",
        "Events of ShipOrder: it follows from the list: write a rule, a schedule or an AWS::Lambda::EventSourceMapping of \
         your own below the closing mark of Resources",
    ];
    assert_eq!(lines, expected);
    // Comments are written too, so a changed comment is reported.
    let commented = text.replacen("# events are inserted once", "# events come once", 1);
    assert_eq!(edits(&commented, &write(&commented).unwrap()).unwrap().len(), 1);

    let kept = adopted(&edited, &application.stack, &place).unwrap();
    assert_eq!(kept.lost, expected[3..]);
    let template = json_of(&kept.text);
    assert_eq!(template["Resources"]["OfferProduct"]["Properties"]["Timeout"], 5);
    assert_eq!(template["Parameters"]["LogRetentionDays"]["Default"], 90);
    assert_eq!(template["Resources"]["Mine"]["Type"], "AWS::S3::Bucket");
    assert_eq!(write(&kept.text).unwrap(), kept.text, "a second run changes nothing");
}

#[test]
fn settings_are_of_something_that_is_written_and_take_intrinsic_functions() {
    let application = starter();
    let (text, place) = read(&application);
    let with = |settings: &str| {
        let text = text.replacen(
            "Parameters:\n",
            &format!("Metadata:\n  Ringfence:\n{settings}\nParameters:\n"),
            1,
        );
        written(&text, &application.stack, &place, None)
    };
    let set = with(
        "    TakeOrder:\n      Layers: [!Ref Tracing]\n      Environment: { Variables: { MODE: !If [A, b, c] } }\n    \
         RunCommands: { Environment: { Variables: { KEY_PARAMETER: !Ref Key } } }\n    Logs: { RetentionInDays: 7 }\n    \
         Globals: { Timeout: 20 }\n    EventTableName: { Default: events }\n    RowsParked: { Threshold: 3 }\n",
    );
    let template = json_of(&set.unwrap());
    let properties = |id: &str| &template["Resources"][id]["Properties"];
    assert_eq!(properties("TakeOrder")["Layers"], json!([{ "!Ref": "Tracing" }]));
    let mode = json!({ "Variables": { "MODE": { "!If": ["A", "b", "c"] } } });
    assert_eq!(properties("TakeOrder")["Environment"], mode);
    let variables = properties("RunCommands")["Environment"]["Variables"].as_object().unwrap();
    let names: BTreeSet<_> = variables.keys().map(String::as_str).collect();
    assert_eq!(names, ["COMMAND_QUEUE_URL", "DEAD_LETTER_QUEUE_URL", "KEY_PARAMETER"].into());
    let role = properties("RunCommandsRole").to_string();
    assert!(role.contains("ReadKey") && role.contains("parameter${Key}"), "{role}");
    assert_eq!(properties("Logs")["RetentionInDays"], 7);
    assert_eq!(properties("RowsParked")["Threshold"], 3);
    assert_eq!(template["Globals"]["Function"]["Timeout"], 20);
    assert_eq!(template["Parameters"]["EventTableName"]["Default"], "events");
    let error = with("    Nothing: { Timeout: 1 }\n").unwrap_err().to_string();
    assert!(error.contains("Ringfence: Nothing: no such function"), "{error}");
}

#[test]
fn a_setting_that_can_not_be_is_refused_with_the_way_out() {
    let application = starter();
    let (text, place) = read(&application);
    let write = |table: &str| {
        let text =
            text.replacen("Parameters:\n", &format!("Metadata:\n  {table}\n\nParameters:\n"), 1);
        written(&text, &application.stack, &place, None).map_err(|error| error.to_string())
    };
    for (table, said) in [
        ("Ringfence:", "Ringfence is not a map: it is a map by logical id"),
        ("Ringfence: [TakeOrder]", "Ringfence is not a map"),
        ("Ringfence: { TakeOrder: 512 }", "TakeOrder: settings are a map, such as"),
    ] {
        let error = write(table).unwrap_err();
        assert!(error.contains(said), "{table}: {error}");
    }
    for (settings, said) in [
        (
            "TakeOrder: { Properties: { Timeout: 5 } }",
            "Properties: write the properties without it",
        ),
        (
            "TakeOrder: { Type: AWS::S3::Bucket }",
            "Type: it follows from the list: write one of your own",
        ),
        (
            "TakeOrder: { IgnoreGlobals: [Timeout] }",
            "IgnoreGlobals: functions need what Globals sets",
        ),
        ("TakeOrder: { UpdatePolicy: {} }", "UpdatePolicy: no type that is written takes it"),
        (
            "TakeOrder: { Policies: [] }",
            "Policies: it follows from the list: write an AWS::IAM::RolePolicy",
        ),
        ("DcbLogRole: { Policies: [] }", "Policies: it follows from the list"),
        ("TakeOrder: { Events: {} }", "Events: it follows from the list: write a rule"),
        (
            "TakeOrder: { Metadata: { BuildProperties: { Binary: x } } }",
            "Binary follows from the list",
        ),
        ("TakeOrder: { Environment: { A: b } }", "Environment: it has one entry, Variables"),
        ("RowsParked: { Metrics: [] }", "Metrics: it follows from the list: write an alarm"),
        ("Dashboard: { DashboardBody: x }", "DashboardBody: it follows from the list"),
        ("TakeOrder: { \"<<\": { Timeout: 5 } }", "CloudFormation knows no merge keys"),
        ("TakeOrder: { Tags: { \"<<\": { A: b } } }", "CloudFormation knows no merge keys"),
        ("Globals: { Function: { Timeout: 5 } }", "Globals: Function: leave it out"),
        ("Globals: { Condition: A }", "Condition: only a resource takes it"),
        ("LogRetentionDays: { Type: String }", "Type: it follows from the list"),
        ("EventTable: { GlobalSecondaryIndexes: x }", "it is a list of maps with IndexName"),
        (
            "EventTable: { AttributeDefinitions: [{ AttributeName: id, AttributeType: N }] }",
            "id follows from the list",
        ),
        // What a condition leaves out must not be named by what is there.
        (
            "AutomationsDeadLetters: { Condition: A }",
            "AutomationsDeadLetters: Condition: AutomationsDeadLettersPolicy needs it",
        ),
        ("IndexTable: { Condition: A }", "IndexTable: Condition: IndexTableArn needs it"),
    ] {
        let error = write(&format!("Ringfence:\n    {settings}")).unwrap_err();
        assert!(error.contains(said), "{settings}: {error}");
    }
}

#[test]
fn a_role_may_do_what_the_variables_of_its_functions_need_and_a_condition_is_known_to_all() {
    let application = starter();
    let (text, place) = read(&application);
    let table = "Metadata:
  Ringfence:
    Globals: { Environment: { Variables: { ALL_PARAMETER: { Ref: All } } } }
    TakeOrder:
      Environment:
        Variables: { IN_BUCKET: !Ref In, OUT_BUCKET: !Ref Out, OLD_BUCKET: old-name, MAIL_FROM: !Ref Sender }
    OfferProduct: { Environment: { Variables: { IN_BUCKET: !Ref In } } }
    RunCommands: { Environment: { Variables: { A_PARAMETER: !If [X, !Ref A, /b] } } }
    ProjectViews: { Condition: X }
    QueryViews: { Condition: X }
    RowsParked: { Condition: X }
";
    let own = "  In:\n    Type: AWS::S3::Bucket\n";
    let text = text.replacen("Parameters:\n", &format!("{table}\nParameters:\n"), 1).replacen(
        "\nOutputs:\n",
        &format!("{own}\nOutputs:\n"),
        1,
    );
    let text = written(&text, &application.stack, &place, None).unwrap();
    let template = json_of(&text);
    let statements = |role: &'static str| {
        let all =
            template["Resources"][role]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
                .clone();
        let all: Vec<_> = all
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (it["Sid"].clone(), it["Resource"].clone()))
            .collect();
        let sids: BTreeSet<_> = all.iter().map(|(sid, _)| sid.to_string()).collect();
        assert_eq!(sids.len(), all.len(), "{role}: {all:?}");
        move |sid: &str| {
            all.iter()
                .find(|(it, _)| it == sid)
                .unwrap_or_else(|| panic!("{role} lacks {sid}"))
                .1
                .clone()
        }
    };
    let of_slices = statements("DcbLogRole");
    assert_eq!(of_slices("KeepIn"), json!({ "!Sub": "${In.Arn}/*" }));
    // Not a resource of this template, so it is a parameter with the bucket's name.
    assert_eq!(of_slices("FindOut"), json!({ "!Sub": "arn:${AWS::Partition}:s3:::${Out}" }));
    assert_eq!(
        of_slices("KeepOldBucket"),
        json!({ "!Sub": "arn:${AWS::Partition}:s3:::old-name/*" })
    );
    let account = "${AWS::Region}:${AWS::AccountId}";
    let sender = format!("arn:${{AWS::Partition}}:ses:{account}:identity/${{Sender}}");
    assert_eq!(of_slices("SendMail"), json!({ "!Sub": sender }), "there is no MailIdentity");
    let all = format!("arn:${{AWS::Partition}}:ssm:{account}:parameter${{All}}");
    for role in ["DcbLogRole", "RunCommandsRole", "IndexEventsRole", "ForwardSpansRole"] {
        assert_eq!(statements(role)("ReadAll"), json!({ "!Sub": all }), "{role}");
    }
    let name = json!({ "name": { "!If": ["X", { "!Ref": "A" }, "/b"] } });
    let named = format!("arn:${{AWS::Partition}}:ssm:{account}:parameter${{name}}");
    assert_eq!(statements("RunCommandsRole")("ReadAParameter"), json!({ "!Sub": [named, name] }));

    // `written` itself refuses a name without its condition.
    let resources = &template["Resources"];
    let polls = &resources["MappingsStopped"]["Properties"]["Metrics"];
    let expected = json!(["publishEventsStream", "indexEventsStream", { "!If": ["X", "projectViewsStream", "1"] }]);
    assert_eq!(
        polls[0]["Expression"]["!Join"][1].as_array().unwrap()[..3],
        expected.as_array().unwrap()[..]
    );
    let value = &polls[3]["MetricStat"]["Metric"]["Dimensions"][0]["Value"];
    assert_eq!(*value, json!({ "!If": ["X", { "!Ref": "ProjectViewsStream" }, "none"] }));
    let value = &resources["CommandsFail"]["Properties"]["Metrics"][2]["MetricStat"]["Metric"]["Dimensions"]
        [0]["Value"];
    assert_eq!(*value, json!({ "!If": ["X", { "!Ref": "QueryViews" }, "none"] }));
    let body = resources["Dashboard"]["Properties"]["DashboardBody"].to_string();
    assert!(!body.contains("RowsParked.Arn") && body.contains("ViewsBehind.Arn"), "{body}");
}

/// All that stands outside of the marks.
fn outside(text: &str) -> String {
    let mut is_inside = false;
    let mut outside = String::new();
    for line in text.split_inclusive('\n') {
        is_inside &= !line.starts_with("  # --- end ");
        if !is_inside && !line.starts_with("  # --- end ") {
            outside += line;
        }
        is_inside |= line.starts_with("  # --- written by");
    }
    outside
}

#[test]
fn all_that_is_outside_of_the_marks_stays_byte_for_byte() {
    let application = starter();
    let (today, place) = read(&application);
    // An older release wrote another time-out, and a slice that is deleted; a person changed none of it.
    let older: String = sections(&today)
        .into_iter()
        .map(|Section { before, block, after, .. }| {
            let block = block.map(|block| {
                let gone = "  Gone:\n    Type: AWS::Serverless::Function\n    Metadata: { BuildMethod: rust-cargolambda, \
                            BuildProperties: { Binary: gone } }\n    Properties:\n      Role: !GetAtt DcbLogRole.Arn\n\n  Api:\n";
                sealed(&block.body.replacen("Timeout: 10 #", "Timeout: 7 #", 1).replacen("  Api:\n", gone, 1))
            });
            format!("{before}{}{after}", block.unwrap_or_default())
        })
        .collect();
    let table = "# Ours.
Metadata: # all of it
    Other:   [a,   'b']

    Ringfence: # by id
        # Why it is large.
        TakeOrder:   { MemorySize:   1024 }   # megabytes
        ShipOrder:
            # Why it is slow.
            Timeout:  20
        # Below the table.
    Last: \"x\"

# Parameters.
";
    let own = "
  # Before ours.

  Ours: # a bucket
    Type:   AWS::S3::Bucket

  # After ours.

# The outputs.

";
    let older = older
        .replacen("Parameters:\n", &format!("{table}Parameters:\n  # First.\n"), 1)
        .replacen("\nOutputs:\n", &format!("{own}Outputs:\n"), 1)
        + "  # The end.";
    assert_eq!(edits(&older, &today).unwrap(), [""; 0], "each block is as it was written");
    let fresh = written(&older, &application.stack, &place, None).unwrap();
    assert_eq!(outside(&fresh), outside(&older));
    assert!(!fresh.contains("  Gone:") && fresh.contains("Timeout: 10 #"));
    let taken = adopted(&older, &application.stack, &place).unwrap();
    assert_eq!((taken.text, taken.lost), (fresh.clone(), Vec::new()), "nobody has edited it");

    // An edit adds a line to the table.
    let edited = fresh
        .replacen(
            "      Timeout: 20\n",
            "      Timeout: 20\n      ReservedConcurrentExecutions: 5\n",
            1,
        )
        .replacen("      MemorySize: 1024\n", "      MemorySize: 1024\n      Tracing: Active\n", 1)
        .replacen("    Default: 30\n", "    Default: 90\n", 1);
    let taken = adopted(&edited, &application.stack, &place).unwrap();
    assert_eq!(taken.lost, [""; 0]);
    let more = [
        ("{ MemorySize:   1024 }", "{ MemorySize:   1024, Tracing: Active }"),
        ("Timeout:  20\n", "Timeout:  20\n            ReservedConcurrentExecutions: 5\n"),
        ("Executions: 5\n", "Executions: 5\n        LogRetentionDays: { Default: 90 }\n"),
    ];
    let expected = more.iter().fold(outside(&older), |text, (old, new)| text.replacen(old, new, 1));
    assert_eq!(outside(&taken.text), expected);

    // A section that is missing goes to its place, before the comments of the next one.
    let begin = fresh.find("Rules:\n").unwrap();
    let end = fresh.find("Conditions:\n").unwrap();
    let without = format!("{}# The conditions.\n{}", &fresh[..begin], &fresh[end..]);
    let again = written(&without, &application.stack, &place, None).unwrap();
    let expected =
        format!("{}{}# The conditions.\n{}", &fresh[..begin], &fresh[begin..end], &fresh[end..]);
    assert_eq!(again, expected);

    // Lines may end with CR LF, all of them.
    let windows = |text: &str| text.replace('\n', "\r\n");
    assert_eq!(
        written(&windows(&older), &application.stack, &place, None).unwrap(),
        windows(&fresh)
    );
    assert_eq!(edits(&windows(&older), &windows(&fresh)).unwrap(), [""; 0]);
    let taken = adopted(&windows(&edited), &application.stack, &place).unwrap();
    assert_eq!(taken.text, windows(&adopted(&edited, &application.stack, &place).unwrap().text));
    let mixed = windows(&older).replacen("\r\n", "\n", 1);
    let error = written(&mixed, &application.stack, &place, None).unwrap_err().to_string();
    assert!(
        error.contains("end with CR LF and lines that end with LF: save it with one"),
        "{error}"
    );
}

#[test]
fn what_a_team_has_in_an_old_template_is_kept_or_named() {
    let application = starter();
    let (_, place) = read(&application);
    let mut old = include_str!("old_stack.yaml").to_owned();
    for (from, to) in [
        // A statement of the slices' role, and one that denies.
        (
            "        - PolicyName: dcb-log\n          PolicyDocument:\n            Version: \"2012-10-17\"\n            Statement:\n",
            "        - PolicyName: dcb-log\n          PolicyDocument:\n            Version: \"2012-10-17\"\n            Statement:\n              \
             - { Sid: Ours, Effect: Allow, Action: s3:GetObject, Resource: !Sub \"${Reports.Arn}/*\" }\n              \
             - { Effect: Deny, Action: \"s3:*\", Resource: !If [A, x, y] }\n",
        ),
        // An index.
        (
            "        - { AttributeName: position, AttributeType: N }\n",
            "        - { AttributeName: position, AttributeType: N }\n        - { AttributeName: ours, AttributeType: S }\n",
        ),
        (
            "      StreamSpecification: { StreamViewType: NEW_IMAGE } # events are inserted once: no old image\n      TimeToLive",
            "      GlobalSecondaryIndexes:\n        - IndexName: ours\n          KeySchema: [{ AttributeName: ours, KeyType: HASH }]\n          \
             Projection: { ProjectionType: ALL }\n      StreamSpecification: { StreamViewType: NEW_IMAGE }\n      TimeToLive",
        ),
        // Attributes of a function.
        (
            "BuildProperties: { Binary: take-order } }\n",
            "BuildProperties: { Binary: take-order, Flags: [--locked] }, cfn_nag: off }\n    UpdatePolicy: { A: b }\n",
        ),
        (
            "BuildProperties: { Binary: offer-product } }",
            "BuildProperties: { Binary: offer-more } }",
        ),
        // Another kind of resource by a name of another stack, and one that older releases wrote.
        (
            "  Reports: # for",
            "  LanesParked:\n    Type: AWS::S3::Bucket\n\n  RingReaders:\n    Type: AWS::Serverless::Function\n\n  Reports: # for",
        ),
        ("  LogGroupName: {", "  LogGroupName: { Export: { Name: logs },"),
        ("  # ---- What only", "  # Ours too.\n\n  # ---- What only"),
    ] {
        assert!(old.contains(from), "{from}");
        old = old.replacen(from, to, 1);
    }
    let before = adopted(include_str!("old_stack.yaml"), &application.stack, &place).unwrap();
    let taken = adopted(&old, &application.stack, &place).unwrap();
    let more: Vec<_> = taken.lost.iter().filter(|line| !before.lost.contains(line)).collect();
    assert_eq!(
        more,
        [
            "Metadata of OfferProduct: the name of the binary follows from the list",
            "UpdatePolicy of TakeOrder: no type that is written takes it: write a resource of your own below the closing mark",
            "Resources: RingReaders: its name is NotifyReaders now; settings are those of NotifyReaders",
            "Outputs: LogGroupName follows from the list: write yours by another name below the closing mark of Outputs",
        ]
    );
    let template = json_of(&taken.text);
    let settings = &template["Metadata"]["Ringfence"];
    let metadata = json!({ "BuildProperties": { "Flags": ["--locked"] }, "cfn_nag": "off" });
    assert_eq!(settings["TakeOrder"]["Metadata"], metadata);
    let resources = &template["Resources"];
    let of_function = json!({ "BuildMethod": "rust-cargolambda", "BuildProperties": { "Binary": "take-order", "Flags": ["--locked"] }, "cfn_nag": "off" });
    assert_eq!(resources["TakeOrder"]["Metadata"], of_function);
    let table = &resources["EventTable"]["Properties"];
    assert!(
        table["GlobalSecondaryIndexes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["IndexName"] == "ours")
    );
    assert!(
        table["AttributeDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["AttributeName"] == "ours")
    );
    assert_eq!(resources["LanesParked"]["Type"], "AWS::S3::Bucket");
    let policy = &resources["DcbLogRoleOwn"];
    assert_eq!(policy["Type"], "AWS::IAM::RolePolicy");
    assert_eq!(policy["Properties"]["RoleName"], json!({ "!Ref": "DcbLogRole" }));
    let statements = policy["Properties"]["PolicyDocument"]["Statement"].as_array().unwrap();
    assert_eq!(statements[0]["Resource"], json!({ "!Sub": "${Reports.Arn}/*" }));
    assert_eq!(statements[1]["Resource"], json!({ "!If": ["A", "x", "y"] }));
    assert_eq!(statements.len(), 2);
    assert!(
        taken.text.contains("  # Ours too.\n\n  # ---- What only"),
        "comments before what is kept"
    );
    assert_eq!(written(&taken.text, &application.stack, &place, None).unwrap(), taken.text);
}

/// A stack that was made before templates were written, with a bucket, a parameter and a setting of its own. The step that
/// the command line describes: `ringfence template --adopt`.
#[test]
fn an_old_stack_is_taken_over_with_all_of_its_own_parts() {
    let application = starter();
    let (today, place) = read(&application);
    let old = include_str!("old_stack.yaml");
    let taken = adopted(old, &application.stack, &place).unwrap();
    // It has no context on the other two logs, whose tables stay in the account.
    let lost: Vec<_> =
        taken.lost.iter().map(|line| line.split(": it follows").next().unwrap()).collect();
    let others = ["Aggregate", "Document"].map(|log| {
        ["Table", "TableArn", "StreamArn"]
            .map(|end| format!("Resources: {log}{end}: the list does not need it"))
    });
    for other in others.as_flattened() {
        assert!(lost.contains(&&**other), "{other}: {lost:#?}");
    }
    let lost: Vec<_> = lost
        .into_iter()
        .filter(|line| !line.contains("Aggregate") && !line.contains("Document"))
        .collect();
    assert_eq!(
        lost,
        [
            "Resources: FireDeadlines: the list does not need it",
            "Resources: FireDeadlinesRole: the list does not need it",
            "Metrics of StreamsBehind",
            "Metrics of MappingsStopped",
            "Metrics of BatchesGivenUp",
            "Metrics of BatchesLost",
            "Metrics of FunctionsFail",
            "AlarmDescription of PublishEventsHasDeadLetters",
            "AlarmDescription of IndexEventsHasDeadLetters",
            "AlarmDescription of AutomationsHaveDeadLetters",
            "AlarmDescription of CommandsHaveDeadLetters",
            "Metrics of CommandsFail",
            "Resources: DeadlinesLate: the list does not need it",
            "DashboardBody of Dashboard",
            "Resources: the comment `# One event is put by itself; the next slot of one partition and the record of a key are \
             looked at so.` and 12 more: write comments outside of the marks",
        ],
        "the starter has no deadlines, and an older release wrote other alarms"
    );
    assert!(
        taken.text.contains(
            "  # ---- What only this stack has ----\n\n  Reports: # for the accountant\n"
        )
    );
    let (old, mut taken_over, today) = (json_of(old), json_of(&taken.text), json_of(&today));
    assert_eq!(taken_over["Metadata"]["Ringfence"], json!({ "TakeOrder": { "MemorySize": 1024 } }));
    assert_eq!(taken_over["Resources"]["Reports"], old["Resources"]["Reports"]);
    assert_eq!(taken_over["Parameters"]["Greeting"], old["Parameters"]["Greeting"]);
    let memory = &taken_over["Resources"]["TakeOrder"]["Properties"]["MemorySize"];
    assert_eq!(*memory, 1024);
    // The rest equals a new stack.
    taken_over["Resources"]["TakeOrder"]["Properties"]
        .as_object_mut()
        .unwrap()
        .remove("MemorySize");
    taken_over["Resources"].as_object_mut().unwrap().remove("Reports");
    taken_over["Parameters"].as_object_mut().unwrap().remove("Greeting");
    for section in ["Parameters", "Rules", "Conditions", "Globals", "Resources", "Outputs"] {
        assert_eq!(taken_over[section], today[section], "{section}");
    }
    assert_eq!(written(&taken.text, &application.stack, &place, None).unwrap(), taken.text);
}

#[derive(clap::Parser)]
struct New {
    #[command(subcommand)]
    command: ringfence_new::NewCommand,
}

/// `ringfence new` has no list to write a template from, so it changes the text of the starter's template.
#[test]
fn a_new_stack_has_the_template_that_is_written_for_it() {
    let stack = starter().stack;
    for auth in ["iam", "jwt"] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("my-shop");
        let arguments = ["ringfence", "new", root.to_str().unwrap(), "--auth", auth];
        let New { command } = clap::Parser::parse_from(arguments);
        command.run().unwrap();
        let text = fs::read_to_string(root.join("template.yaml")).unwrap();
        assert_eq!(written(&text, &stack, &StackPlace::of(&root), None).unwrap(), text, "{auth}");
    }
}
