//! The output of `ringfence template`, and the parts that it keeps.

use std::collections::BTreeSet;
use std::fs;

use ringfence_acceptance::{Application, applications};
use ringfence_lambda::VariableNames;
use ringfence_local::workspace_root;
use ringfence_stack::{MemberList, Members, Stack, Visitor};
use ringfence_template::written::{StackPlace, adopted, edits, written};
use serde_json::{Value, json};

/// The most lines outside of the marks, by the folder of the stack. People maintain these lines.
const BY_HAND_MAX: [(&str, usize); 3] = [("", 150), ("projects", 150), ("starter", 60)];

pub(super) fn read(application: &Application) -> (String, StackPlace) {
    let text = fs::read_to_string(application.root.join("template.yaml")).unwrap();
    (text, StackPlace::of(&application.root))
}

pub(super) fn json_of(text: &str) -> Value {
    serde_json::to_value(serde_yaml_ng::from_str::<serde_yaml_ng::Value>(text).unwrap()).unwrap()
}

pub(super) fn starter() -> Application {
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
fn a_program_writes_the_template_of_its_own_stack_alone() {
    for (n, application) in applications().enumerate() {
        for (m, other) in applications().enumerate() {
            let place = StackPlace::own(&other.root, &application.stack);
            assert_eq!(
                place.is_ok(),
                n == m,
                "{} in {}",
                application.stack.name,
                other.root.display()
            );
            if let Err(error) = place {
                let said = format!("this program is of the stack {}, and ", application.stack.name);
                assert!(error.to_string().starts_with(&said), "{error}");
            }
        }
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
        .replacen("[OrderTaken]", "[OrderShipped]", 1);
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
fn settings_are_of_written_parts_and_take_intrinsic_functions() {
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
fn a_wrong_setting_is_refused_with_the_way_out() {
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
        ("TakeOrder: { MemorySize: }", "MemorySize: it has no value"),
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
        // A part must not name another one that a condition may leave out.
        (
            "AutomationsDeadLetters: { Condition: A }",
            "AutomationsDeadLettersPolicy needs AutomationsDeadLetters, which the condition A may leave out",
        ),
        (
            "IndexTable: { Condition: A }",
            "IndexTableArn needs IndexTable, which the condition A may leave out",
        ),
    ] {
        let error = write(&format!("Ringfence:\n    {settings}")).unwrap_err();
        assert!(error.contains(said), "{settings}: {error}");
    }
    let own = "  IndexTable: { Type: T }\n  ProjectViews: { Type: T }\n\nOutputs:\n";
    let text = ["IndexTable", "ProjectViews"]
        .iter()
        .fold(text, |text, id| text.replacen(&format!("\n  {id}:"), &format!("\n  Old{id}:"), 1));
    let text = text.replacen("\nOutputs:\n", own, 1);
    let error = written(&text, &application.stack, &place, None).unwrap_err().to_string();
    assert!(error.contains("IndexTable") && error.contains("ProjectViews"), "{error}");
}

#[test]
fn roles_allow_the_uses_of_variables_and_all_references_know_conditions() {
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
    let twice = |settings: &str| {
        let table = format!("Metadata:\n  Ringfence:\n    {settings}\n\nParameters:\n");
        let text = read(&application).0.replacen("Parameters:\n", &table, 1);
        written(&text, &application.stack, &place, None).unwrap_err().to_string()
    };
    for settings in [
        "TakeOrder: { Environment: { Variables: { DATA_BUCKET: one } } }\n    \
         OfferProduct: { Environment: { Variables: { DATA_BUCKET: two } } }",
        "TakeOrder: { Environment: { Variables: { X_PARAMETER: !Ref Events } } }",
    ] {
        let error = twice(settings);
        assert!(error.contains("in DcbLogRole, which has another one of that name"), "{error}");
    }
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
    let look = &resources["LookAtMappings"]["Properties"];
    let other = json!({ "!If": ["X", { "!Ref": "ProjectViewsStream" }, { "!Ref": "PublishEventsStream" }] });
    let input = &look["Events"]["Look"]["Properties"]["Input"]["!Sub"];
    assert_eq!(input[1]["ProjectViewsStream"], other);
    let arns = &look["Policies"][0]["Statement"][0]["Resource"];
    assert_eq!(arns[2]["!If"][2], json!({ "!Ref": "AWS::NoValue" }));
    let value = &resources["CommandsFail"]["Properties"]["Metrics"][2]["MetricStat"]["Metric"]["Dimensions"]
        [0]["Value"];
    assert_eq!(*value, json!({ "!If": ["X", { "!Ref": "QueryViews" }, "none"] }));
    let body = resources["Dashboard"]["Properties"]["DashboardBody"].to_string();
    assert!(!body.contains("RowsParked.Arn") && body.contains("ViewsBehind.Arn"), "{body}");
}

#[test]
fn a_reactor_has_the_parameters_the_variables_and_the_condition_of_its_effects() {
    let application = applications().next().unwrap();
    let (text, place) = read(&application);
    let mut stack = application.stack.clone();
    let mut with_effects = |variables: fn() -> VariableNames| {
        let reactors = stack.contexts.iter_mut().flat_map(|context| &mut context.reactors);
        reactors.for_each(|reactor| reactor.variables = variables);
        json_of(&written(&text, &stack, &place, None).unwrap())
    };
    let none = with_effects(VariableNames::default);
    let both = with_effects(|| {
        let required = ["MAIL_FROM", "WEBHOOK_URL"].map(str::to_owned).into();
        VariableNames { required, ..VariableNames::default() }
    });
    for name in ["MailFrom", "WebhookUrl", "WebhookSecretsParameter"] {
        let is_there = |template: &Value| template["Parameters"].get(name).is_some();
        assert!(is_there(&both) && !is_there(&none), "{name}");
    }
    let reactor = |template: &Value| template["Resources"]["ConfirmOrder"].clone();
    assert!(reactor(&none)["Condition"].is_null());
    assert!(reactor(&none)["Properties"]["Environment"].is_null());
    assert_eq!(reactor(&both)["Condition"], "HasMailAndWebhook");
    assert!(both["Conditions"].get("HasMailAndWebhook").is_some());
    let variables = reactor(&both)["Properties"]["Environment"]["Variables"].clone();
    assert_eq!(
        variables["WEBHOOK_SECRETS_PARAMETER"],
        json!({ "!Ref": "WebhookSecretsParameter" })
    );
    assert_eq!(variables.as_object().unwrap().len(), 5);
    let role = both["Resources"]["ConfirmOrderRole"].to_string();
    assert!(role.contains("ReadWebhookSecretsParameter") && role.contains("SendMail"), "{role}");
}

#[derive(clap::Parser)]
pub(super) struct New {
    #[command(flatten)]
    pub(super) stack: ringfence_new::NewStack,
}

/// `ringfence-new` has no list to write a template from, so it changes the text of the starter's template.
#[test]
fn a_new_stack_has_the_template_that_is_written_for_it() {
    let (starter, empty) = (starter().stack, Stack::of::<Empty>().unwrap());
    for (auth, is_empty) in [("iam", false), ("jwt", false), ("iam", true), ("jwt", true)] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("my-shop");
        let mut arguments = vec!["ringfence-new", root.to_str().unwrap(), "--auth", auth];
        arguments.extend(is_empty.then_some("--empty"));
        let New { stack: new } = clap::Parser::parse_from(arguments);
        new.write().unwrap();
        let text = fs::read_to_string(root.join("template.yaml")).unwrap();
        let stack = if is_empty { &empty } else { &starter };
        let fresh = written(&text, stack, &StackPlace::of(&root), None).unwrap();
        let is_kept = is_empty && auth == "iam";
        if is_kept && fresh != text && std::env::var_os("UPDATE").is_some() {
            // The next build takes it from there.
            fs::write(workspace_root().join("tools/new/files/empty.yaml"), fresh).unwrap();
            return;
        }
        assert!(
            fresh == text,
            "{auth}, empty: {is_empty}: `UPDATE=1 cargo test --test rules` writes it"
        );
    }
}

/// A stack without contexts.
struct Empty;

impl Members for Empty {
    fn list(_: &mut MemberList<impl Visitor>) {}
}
