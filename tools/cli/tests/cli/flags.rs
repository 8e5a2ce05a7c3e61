use std::process::{Output, Stdio};

use crate::world::{BUCKET, World, ringfence};

/// The error of the command in an empty environment.
fn refused(arguments: &str) -> String {
    let mut ringfence = ringfence();
    for name in [
        "EVENT_TABLE",
        "INDEX_TABLE",
        "VIEW_TABLE",
        "AGGREGATE_TABLE",
        "DOCUMENT_TABLE",
        "EVENT_BUS",
        "RULES_ARE_OFF",
    ] {
        ringfence.env_remove(name);
    }
    let output = ringfence.args(arguments.split_whitespace()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments}");
    assert!(output.stdout.is_empty(), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_api_is_a_document() {
    let output = ringfence().args(["api", "--openapi"]).output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/catalog/pack-parcel"]["post"].is_object(), "{document:#}");
    let output = ringfence().args(["api", "--html"]).output().unwrap();
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("/catalog/pack-parcel"));
    // Nobody reads the output, as after the last line of `| head`.
    let mut unread = ringfence();
    unread.args(["api", "--openapi"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut unread = unread.spawn().unwrap();
    drop(unread.stdout.take());
    let output = unread.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn wrong_flags_are_named() {
    for (arguments, expected) in [
        ("verify", "--table <TABLE>"),
        ("verify --table t --passes 0", "0 is not in 1.."),
        ("import source --table t", "--from <FROM>"),
        (
            "import --from elsewhere source --table t",
            "[possible values: jsonl, reventless, castore-legacy, propulsion-index]",
        ),
        ("import --from reventless --table t", "<SOURCE>"),
        (
            "import --from reventless source --rules-are-off",
            "name the table of the DCB log with --table or --stack",
        ),
        (
            "import --from jsonl source --table t",
            "could act on the events and take the places of later ones: ask-supplier, destroy-keys, pack-parcel. Switch the",
        ),
        ("aggregates verify", "--aggregate-table <AGGREGATE_TABLE>"),
        ("documents verify", "--document-table <DOCUMENT_TABLE>"),
        ("aggregates list --aggregate-table t", "--context <NAME>"),
        (
            "documents prune --context carts --document-table d --index-table i",
            "--older-than <TIME>",
        ),
        ("due", "--view-table <VIEW_TABLE>"),
        ("due --view-table v --in soon", "'soon'"),
        ("due --view-table v --in 2h", "--in is for a stack on this machine"),
        ("tail", "--index-table <INDEX_TABLE>"),
        ("due --view-table v --key-table k", "--personal-key <PERSONAL_KEY>"),
        ("due --view-table v --key-table k --personal-key file:k", "--stack-name <STACK_NAME>"),
        ("schemas check", "name the index with --index-table, INDEX_TABLE or --stack"),
        ("schemas check --base main --last 9", "cannot be used with"),
        ("schemas check --index-table i --last 0", "0 is not in 1.."),
        ("tail --index-table i --from -1", "'-1'"),
        ("tail --index-table i --from soon", "a checkpoint must be an integer"),
        ("tail --index-table i --reader a", "give --view-table, VIEW_TABLE or --stack"),
        ("tail --index-table i --view-table v --reader a --from 1", "cannot be used with"),
        ("tail --index-table i --view-table v --reader orders#1", "256 bytes and no #"),
        ("tail --index-table i --tag order", "a tag is KEY:VALUE, such as orderId:ord-1"),
        ("read --table t --tag :x", "\":x\" is not a tag: a tag is KEY:VALUE"),
        ("replay bus --index-table i --view-table v --bus b", "--name <NAME>"),
        ("replay bus --index-table i --view-table v --bus b --name a#1", "a name has 1 to 64"),
        ("replay bus --index-table i --view-table v --bus b --name a --rate 0", "--rate"),
        ("replay bus --index-table i --view-table v --name a", "--bus <BUS>"),
        (
            "replay bus --index-table i --view-table v --bus b --name a --as-new --until 9",
            "--from <CHECKPOINT>",
        ),
        ("api", "<--openapi|--html|--asyncapi>"),
        ("schema --cdk --terraform", "cannot be used with"),
        ("schema --legacy", "<--cloudformation|--terraform|--cdk>"),
        ("api --asyncapi", "there is no folder schemas here"),
        ("replay view order --index-table i --view-table v", "the views are catalog-products, "),
        ("checkpoint set a --index-table i --view-table v", "<CHECKPOINT>"),
        (
            "send carts/check-out --api http://127.0.0.1:1 --data {}",
            "carts/check-out has no route, because its CALLERS are Nobody: invoke the function check-out with the command",
        ),
        ("redrive", "<--queue <URL|NAME>|--bucket <NAME|FUNCTION>>"),
        ("redrive --bucket b", "--to <TO>"),
        ("redrive --queue automations", "give the URL of a queue, or its name with --stack"),
        ("redrive --queue http://q --bucket b --to bus", "cannot be used with"),
        ("redrive --queue http://q --to bus", "cannot be used with"),
        ("redrive --queue http://q --delete x", "--why <WHY>"),
        ("subjects forget ada", "--why <WHY>"),
        (
            "subjects forget ada --why asked --table t --index-table i",
            "name the table of keys with --key-table or --stack",
        ),
    ] {
        let said = refused(arguments);
        assert!(said.starts_with("error: ") && said.contains(expected), "{arguments}: {said}");
    }
}

/// An unset variable of the shell leaves an empty value.
#[test]
fn an_empty_value_is_refused_by_the_name_of_its_flag() {
    for (flag, rest) in [
        ("queue", &["redrive"][..]),
        ("api", &["send", "rooms/book", "--data", "{}"]),
        ("bucket", &["redrive", "--to", "bus"]),
        ("table", &["verify"]),
        ("index-table", &["tail"]),
        ("bus", &["replay", "bus"]),
        ("aggregate-table", &["aggregates", "verify"]),
        ("document-table", &["documents", "verify"]),
        ("stack", &["tail", "--index-table", "i"]),
    ] {
        let mut ringfence = ringfence();
        let output = ringfence.args(rest).args([&format!("--{flag}"), ""]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flag}: {said}");
        assert!(said.contains(&format!("--{flag} <")) && said.contains("--stack"), "{said}");
    }
}

/// The lines of a text that call the command, with their variables unexpanded.
fn calls(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("ringfence "));
    lines.map(|line| line.split(['#', '|', '>']).next().unwrap_or_default().trim())
}

/// Checks that the help of the called command has each flag of the line.
#[track_caller]
fn check_call(line: &str) {
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let is_name = |word: &&&str| !word.starts_with('-');
    let command: Vec<_> = words.iter().take_while(is_name).take(2).collect();
    let mut ringfence = ringfence();
    let help = ringfence.args(&command).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for flag in words.iter().filter(|word| word.starts_with("--")) {
        let flag = flag.split('=').next().unwrap();
        assert!(
            [" ", "\n", "["].iter().any(|end| help.contains(&format!("{flag}{end}"))),
            "{line}"
        );
    }
}

#[test]
fn every_call_in_the_pages_has_flags_that_exist() {
    let root = ringfence_local::workspace_root();
    let mut found = 0;
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    for page in docs.filter(|page| page.is_file()).chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(page).unwrap();
        for line in calls(&text) {
            check_call(line);
            found += 1;
        }
    }
    assert!(found > 20, "finds {found} calls");
}

#[test]
fn every_command_shows_an_example() {
    for command in [
        "send",
        "explain",
        "boundary",
        "stats",
        "verify",
        "aggregates verify",
        "documents verify",
        "index verify",
        "index repair",
        "repair",
        "import",
        "tail",
        "replay bus",
        "replay view",
        "checkpoint show",
        "checkpoint set",
        "schemas check",
        "redrive",
        "subjects forget",
        "subjects allow",
        "subjects show",
        "subjects list",
        "subjects rotate",
        "subjects verify",
        "template",
    ] {
        let mut ringfence = ringfence();
        let help = ringfence.args(command.split(' ')).arg("--help").output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        assert!(help.contains(&format!("  ringfence {command}")), "{command}: {help}");
        calls(&help).for_each(check_call);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_endpoint_of_a_service_counts_as_absent() {
    let world = World::start().await;
    let redrive = |service: &str, arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env(service, "").env("AWS_ENDPOINT_URL", &world.services);
        let Output { status, stdout, stderr } = command.output().unwrap();
        let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!(status.code(), Some(0), "{service}: {stderr}");
        assert!(stdout.contains("0 left"), "{service}: {stdout}");
    };
    redrive("AWS_ENDPOINT_URL_SQS", &["redrive", "--queue", &world.queue_url()]);
    redrive("AWS_ENDPOINT_URL_S3", &["redrive", "--bucket", BUCKET, "--to", "bus"]);
}
