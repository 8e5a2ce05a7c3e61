//! Real processes under the real runtime API.

use std::{collections::BTreeMap, fs, time::Duration};

use ringfence_local::{
    functions::Functions,
    invoke::{Invoke, InvokeError},
    template::{Function, Retries},
    tools, workspace_root,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A workspace whose one binary is `echo`, and its running function.
async fn start(timeout: Duration) -> (TempDir, Functions) {
    let folder = TempDir::new().expect("a folder");
    let root = folder.path();
    let manifest = "[package]\nname = \"echo\"\nedition = \"2024\"\n[workspace]\n";
    fs::create_dir_all(root.join("src")).expect("a folder");
    fs::write(root.join("Cargo.toml"), manifest).expect("a manifest");
    fs::write(root.join("src/main.rs"), "fn main() {}").expect("a source");
    let programs = BTreeMap::from([("echo".to_owned(), env!("CARGO_BIN_EXE_echo").into())]);

    let definition = Function {
        id: "Echo".to_owned(),
        binary: "echo".to_owned(),
        environment: BTreeMap::from([("EVENT_TABLE".to_owned(), "events".to_owned())]),
        timeout,
        concurrency_max: None,
        memory_mb: 256,
        log_level: Some("DEBUG".to_owned()),
        retries: Retries { attempts_max: None, age_max: None },
        on_failure: None,
    };
    let common = BTreeMap::from([("AWS_ACCESS_KEY_ID".to_owned(), "local".to_owned())]);
    let cargo_lambda = tools::cargo_lambda(&workspace_root()).await.expect("cargo-lambda");
    let logs = root.join("logs");
    let definitions = [definition];
    let functions = Functions::start(root, &cargo_lambda, &definitions, &programs, &common, &logs);
    let functions = functions.await.expect("functions");
    (folder, functions)
}

#[tokio::test]
async fn function_gets_its_payload_and_only_its_environment() {
    let (_folder, functions) = start(Duration::from_secs(20)).await;
    let payload = json!({ "text": "ä\u{1f512}" });
    let answer = functions.invoke("echo", &payload).await.expect("an answer");
    assert_eq!(answer["payload"], payload);
    let environment = &answer["environment"];
    assert_eq!(environment["EVENT_TABLE"], "events");
    assert_eq!(environment["AWS_ACCESS_KEY_ID"], "local");
    assert_eq!(environment["AWS_LAMBDA_FUNCTION_NAME"], "echo");
    assert_eq!(environment["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"], "256");
    assert_eq!(environment["AWS_LAMBDA_LOG_LEVEL"], "DEBUG");
    assert_eq!(environment["PATH"], Value::Null, "nothing of the parent's environment");
}

#[tokio::test]
async fn overlapping_invocations_run_in_processes_of_their_own() {
    let (folder, functions) = start(Duration::from_secs(20)).await;
    let place = folder.path().join("place");
    fs::create_dir(&place).expect("a folder");
    let payload = json!({ "do": "meet", "at": place });
    // One more than the processes that run from the start.
    let three = tokio::join!(
        functions.invoke("echo", &payload),
        functions.invoke("echo", &payload),
        functions.invoke("echo", &payload),
    );
    for answer in [three.0, three.1, three.2] {
        assert_eq!(answer.expect("an answer"), "met");
    }
}

#[tokio::test]
async fn failures_are_told_apart() {
    let (_folder, functions) = start(Duration::ZERO).await;
    match functions.invoke("echo", &json!({ "do": "fail" })).await {
        Err(InvokeError::Function { error, .. }) => assert_eq!(error["errorMessage"], "to fail"),
        other => panic!("{other:?}"),
    }
    let unknown = functions.invoke("nobody", &json!({})).await;
    assert!(matches!(unknown, Err(InvokeError::Unknown { .. })), "{unknown:?}");
    let large = functions.invoke("echo", &json!("x".repeat(7_000_000))).await;
    assert!(matches!(large, Err(InvokeError::TooLarge { .. })), "{large:?}");

    // Both processes end; the process that answers then was started again.
    let end = json!({ "do": "end" });
    let ended = tokio::join!(functions.invoke("echo", &end), functions.invoke("echo", &end));
    for ended in [ended.0, ended.1] {
        assert!(matches!(ended, Err(InvokeError::TimedOut { .. })), "{ended:?}");
    }
    let answer = functions.invoke("echo", &json!(1)).await.expect("a new process");
    assert_eq!(answer["payload"], 1);
}
