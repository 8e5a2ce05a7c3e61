//! The output of `ringfence template`, and the parts that it keeps.

use std::collections::BTreeSet;
use std::fs;

use ringfence_acceptance::{Application, applications};
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
        "Events of ShipOrder follows from the list, and no setting changes it",
    ];
    assert_eq!(lines, expected);
    // Comments are written too, so a changed comment is reported.
    let commented = text.replacen("# events are inserted once", "# events come once", 1);
    assert_eq!(edits(&commented, &write(&commented).unwrap()).unwrap().len(), 1);

    let kept = adopted(&edited, &application.stack, &place).unwrap();
    assert_eq!(kept.lost, ["Events of ShipOrder"]);
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

/// An older stack, whose template was written by hand, with a bucket, a parameter and a setting of its team. The
/// command line describes the step: `ringfence template --adopt`.
#[test]
fn an_old_stack_is_taken_over_with_all_of_its_own_parts() {
    let application = starter();
    let (today, place) = read(&application);
    let old = include_str!("old_stack.yaml");
    let taken = adopted(old, &application.stack, &place).unwrap();
    // It has no context on the other two logs, whose tables stay in the account.
    let lost =
        taken.lost.iter().filter(|lost| !lost.contains("Aggregate") && !lost.contains("Document"));
    assert_eq!(
        lost.collect::<Vec<_>>(),
        [
            "Rules: Streams",
            "Events of IndexEvents",
            "Resources: FireDeadlines",
            "Resources: FireDeadlinesRole",
            "Events of PublishEvents",
            "Resources: DeadlinesLate",
        ],
        "the starter has no deadlines"
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
