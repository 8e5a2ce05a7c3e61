//! The parts of a template that `ringfence template --adopt` keeps, and the parts that it names.

use ringfence_acceptance::applications;
use ringfence_new::marks::{Section, sealed, sections};
use ringfence_template::written::{adopted, edits, written};
use serde_json::json;

use super::written::{json_of, read, starter};

/// The text outside of the marks.
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
    // An older release wrote another time-out, and a slice that was deleted later. No person has edited them.
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

    // All lines may end with CR LF.
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

/// The template of an old stack has no marks, and has the settings in the resources.
#[test]
fn a_template_without_marks_and_settings_becomes_what_it_was() {
    for application in applications() {
        let (text, place) = read(&application);
        let mut is_table = false;
        let lines = text.split_inclusive('\n').filter(|line| {
            is_table = line.starts_with("  Ringfence: #") || is_table && line.starts_with("   ");
            !is_table && !line.starts_with("  # --- ")
        });
        let old: String = lines.collect();
        let taken = adopted(&old, &application.stack, &place).unwrap();
        assert_eq!(taken.lost, [""; 0]);
        assert_eq!(json_of(&taken.text), json_of(&text));
    }
}

#[test]
fn the_parts_of_a_team_in_an_old_template_are_kept_or_named() {
    let application = starter();
    let (_, place) = read(&application);
    let mut old = include_str!("old_stack.yaml").to_owned();
    for (from, to) in [
        // Statements of the slices' role. The last one denies.
        (
            "        - PolicyName: dcb-log\n          PolicyDocument:\n            Version: \"2012-10-17\"\n            Statement:\n",
            "        - PolicyName: dcb-log\n          PolicyDocument:\n            Version: \"2012-10-17\"\n            Statement:\n              \
             - { Sid: Scans, Effect: Allow, Action: [dynamodb:Scan, dynamodb:Query], Resource: !GetAtt EventTableArn.Value }\n              \
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
        // A resource with a name from other stacks but of another kind, and a resource that older releases wrote.
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
            "Resources: RingReaders: ProjectViews does its work now",
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
    let all: Vec<_> = statements.iter().map(|it| it["Resource"].clone()).collect();
    let [scans, ours, none] = [
        json!({ "!GetAtt": "EventTableArn.Value" }),
        json!({ "!Sub": "${Reports.Arn}/*" }),
        json!({ "!If": ["A", "x", "y"] }),
    ];
    assert_eq!(all, [scans, ours, none]);
    assert!(!resources["DcbLogRole"].to_string().contains("Scan"), "slices do not scan");
    assert!(
        taken.text.contains("  # Ours too.\n\n  # ---- What only"),
        "comments before what is kept"
    );
    assert_eq!(written(&taken.text, &application.stack, &place, None).unwrap(), taken.text);
    // A narrower permission is not taken for the role's own wide one, and a second policy has another name.
    let narrow = "              - { Sid: Narrow, Effect: Allow, Action: dynamodb:UpdateItem, Resource: !GetAtt EventTableArn.Value,\n                  \
                  Condition: { StringEquals: { a: b } } }\n";
    let (head, role) = taken.text.split_once("\n  DcbLogRole:").unwrap();
    let statement = "              - Sid: ReadEvents\n";
    let role = role.replacen(statement, &format!("{narrow}{statement}"), 1);
    let again = format!("{head}\n  DcbLogRole:{role}");
    let again = json_of(&adopted(&again, &application.stack, &place).unwrap().text);
    let policies =
        ["DcbLogRoleOwn", "DcbLogRoleOwn2"].map(|id| &again["Resources"][id]["Properties"]);
    assert_ne!(policies[0]["PolicyName"], policies[1]["PolicyName"]);
    assert_eq!(policies[1]["PolicyDocument"]["Statement"][0]["Sid"], "Narrow");
    assert!(!again["Resources"]["DcbLogRole"].to_string().contains("UpdateItem"));
    // The lines do not show where the entries begin.
    let old = old.replacen("\nOutputs:\n", "\n\nOutputs:\n    Ours: { Value: x }\nOld:\n", 1);
    let error = adopted(&old, &application.stack, &place).unwrap_err().to_string();
    assert!(error.contains("each entry of Outputs has to begin on a line of its own"), "{error}");
}

#[test]
fn a_part_that_is_gone_between_the_marks_is_named_before_it_is_written_again() {
    let application = starter();
    let (today, place) = read(&application);
    for (from, to, said) in [
        (
            "                  Resource: !GetAtt ViewTableArn.Value }\n\n  # ---- Commands",
            "                  Resource: !GetAtt ViewTableArn.Value, Condition: { Bool: { a: b } } }\n\n  # ---- Commands",
            "Policies of QueryViewsRole: { Sid: ReadRows, ",
        ),
        (
            "        Variables: { EVENT_BUS: !Ref EventTopic, ",
            "        Variables: { ",
            "Environment of PublishEvents: EVENT_BUS is gone",
        ),
        (
            "        JWT_ISSUERS: !Ref JwtIssuers\n",
            "",
            "Environment of Function: JWT_ISSUERS is gone",
        ),
        ("\n  RowsParked:\n", "\n  RowsParked2:\n", "Resources: RowsParked is gone"),
    ] {
        let text = today.replacen(from, to, 1);
        assert_ne!(text, today, "{from}");
        let lost = adopted(&text, &application.stack, &place).unwrap().lost;
        assert!(lost.iter().any(|line| line.starts_with(said)), "{said}: {lost:?}");
        let written = written(&text, &application.stack, &place, None).unwrap();
        let lines = edits(&text, &written).unwrap();
        assert!(lines.iter().any(|line| line.starts_with(said)), "{said}: {lines:?}");
    }
}

/// A stack from before templates were written, with its own bucket, parameter and setting. The command line describes
/// this step: `ringfence template --adopt`.
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
            "Events of IndexEvents",
            "Resources: FireDeadlines: the list does not need it",
            "Resources: FireDeadlinesRole: the list does not need it",
            "Events of PublishEvents",
            "Events of ShipOrder",
            "Metrics of StreamsBehind",
            "AlarmDescription of MappingsStopped",
            "Metrics of MappingsStopped",
            "Dimensions of MappingsStopped: it is gone",
            "Metrics of BatchesGivenUp",
            "Dimensions of BatchesGivenUp: it is gone",
            "Metrics of BatchesLost",
            "AlarmDescription of FunctionsFail",
            "Metrics of FunctionsFail",
            "AlarmDescription of PublishEventsHasDeadLetters",
            "AlarmDescription of IndexEventsHasDeadLetters",
            "AlarmDescription of AutomationsHaveDeadLetters",
            "AlarmDescription of CommandsHaveDeadLetters",
            "Metrics of CommandsFail",
            "Resources: DeadlinesLate: the list does not need it",
            "DashboardBody of Dashboard",
            "Resources: the comment `# One alarm for each kind of trouble; dashboard and runbook tell whose it is. Where metrics \
             are added or` and 19 more: write comments outside of the marks",
        ],
        "the starter has no deadlines and no route of ship-order, and an older release wrote other alarms and batches"
    );
    assert!(
        taken.text.contains(
            "  # ---- What only this stack has ----\n\n  Reports: # for the accountant\n"
        )
    );
    let (old, mut taken_over, mut today) = (json_of(old), json_of(&taken.text), json_of(&today));
    let mut kept = json!({
        "Api": { "DefaultRouteSettings": { "ThrottlingRateLimit": 100, "ThrottlingBurstLimit": 200 } },
        "IndexEvents": { "MemorySize": 512 },
        "ProjectViews": { "MemorySize": 512 },
        "TakeOrder": { "MemorySize": 1024 },
    });
    // Its tables stay encrypted as they were.
    let encrypted = json!({ "SSEEnabled": true });
    for table in ["EventTable", "IndexTable", "ViewTable"] {
        kept[table] = json!({ "SSESpecification": encrypted });
        today["Resources"][table]["Properties"]["SSESpecification"] = encrypted.clone();
    }
    assert_eq!(taken_over["Metadata"]["Ringfence"], kept);
    assert_eq!(taken_over["Resources"]["Reports"], old["Resources"]["Reports"]);
    assert_eq!(taken_over["Parameters"]["Greeting"], old["Parameters"]["Greeting"]);
    for (id, settings) in kept.as_object().unwrap() {
        for (name, setting) in settings.as_object().unwrap() {
            let own = &mut taken_over["Resources"][id]["Properties"][name];
            assert_eq!(own, setting);
            *own = today["Resources"][id]["Properties"][name].clone();
        }
    }
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
