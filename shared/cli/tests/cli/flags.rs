use std::process::Command;

/// The command without an environment that names anything.
fn refused(arguments: &str) -> String {
    let mut ringfence = Command::new(env!("CARGO_BIN_EXE_ringfence"));
    for name in [
        "EVENT_TABLE",
        "INDEX_TABLE",
        "VIEW_TABLE",
        "AGGREGATE_TABLE",
        "DOCUMENT_TABLE",
        "EVENT_BUS",
    ] {
        ringfence.env_remove(name);
    }
    let output = ringfence.args(arguments.split_whitespace()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments}");
    assert!(output.stdout.is_empty(), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn wrong_flags_are_named() {
    for (arguments, expected) in [
        ("verify", "--table <TABLE>"),
        ("verify --table t --passes 0", "0 is not in 1.."),
        ("aggregates verify", "--aggregate-table <AGGREGATE_TABLE>"),
        ("documents verify", "--document-table <DOCUMENT_TABLE>"),
        ("tail", "--index-table <INDEX_TABLE>"),
        ("tail --index-table i --from -1", "'-1'"),
        ("tail --index-table i --from soon", "a checkpoint is a whole number"),
        ("tail --index-table i --reader a", "--view-table"),
        ("tail --index-table i --view-table v --reader a --from 1", "cannot be used with"),
        ("tail --index-table i --view-table v --reader orders#1", "256 bytes and no #"),
        ("tail --index-table i --tag order", "a tag is KEY:VALUE, such as orderId:ord-1"),
        ("replay bus --index-table i --view-table v --bus b", "--name <NAME>"),
        ("replay bus --index-table i --view-table v --bus b --name a#1", "a name has 1 to 64"),
        ("replay bus --index-table i --view-table v --bus b --name a --rate 0", "--rate"),
        ("replay bus --index-table i --view-table v --name a", "--bus <BUS>"),
        (
            "replay bus --index-table i --view-table v --bus b --name a --as-new --until 9",
            "--from <CHECKPOINT>",
        ),
        ("replay view order --index-table i --view-table v", "the views are catalog-products, "),
        ("checkpoint set a --index-table i --view-table v", "<CHECKPOINT>"),
        ("redrive", "<--queue-url <URL>|--bucket <NAME>>"),
        ("redrive --bucket b", "--to <TO>"),
        ("redrive --queue-url q --bucket b --to bus", "cannot be used with"),
        ("redrive --queue-url q --to bus", "cannot be used with"),
    ] {
        let said = refused(arguments);
        assert!(said.starts_with("error: ") && said.contains(expected), "{arguments}: {said}");
    }
}

#[test]
fn every_command_shows_an_example() {
    for command in [
        "verify",
        "aggregates verify",
        "documents verify",
        "index verify",
        "index repair",
        "repair",
        "tail",
        "replay bus",
        "replay view",
        "checkpoint show",
        "checkpoint set",
        "redrive",
    ] {
        let mut ringfence = Command::new(env!("CARGO_BIN_EXE_ringfence"));
        let help = ringfence.args(command.split(' ')).arg("--help").output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        assert!(help.contains(&format!("  ringfence {command}")), "{command}: {help}");
    }
}
