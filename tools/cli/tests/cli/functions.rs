//! Real processes under the runtime API.

use std::{collections::BTreeMap, fs, time::Duration};

use ringfence_local::{
    functions::Functions,
    invoke::{Invoke, InvokeError},
    stack_clock::StackClock,
    template::{FunctionResource, Retries},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A function whose binary is `echo`.
async fn start(timeout: Duration) -> (TempDir, Functions) {
    let folder = TempDir::new().expect("a folder");
    let programs = BTreeMap::from([("echo".to_owned(), env!("CARGO_BIN_EXE_echo").into())]);
    let definition = FunctionResource {
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
    let logs = folder.path().join("logs");
    let definitions = [definition];
    let functions =
        Functions::start(&definitions, &programs, &common, &logs, StackClock::default());
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
    assert_eq!(environment["RINGFENCE_FUNCTION"], "echo");
    assert_eq!(environment["AWS_LAMBDA_FUNCTION_NAME"], "echo");
    assert_eq!(environment["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"], "256");
    assert_eq!(environment["AWS_LAMBDA_LOG_LEVEL"], "DEBUG");
    assert_eq!(environment["PATH"], Value::Null, "nothing of the parent's environment");
}

#[tokio::test]
async fn overlapping_invocations_run_in_different_processes() {
    let (folder, functions) = start(Duration::from_secs(20)).await;
    let place = folder.path().join("place");
    fs::create_dir(&place).expect("a folder");
    let payload = json!({ "do": "meet", "at": place });
    // One more than the processes that are started at the beginning.
    let three = tokio::join!(
        functions.invoke("echo", &payload),
        functions.invoke("echo", &payload),
        functions.invoke("echo", &payload),
    );
    for answer in [three.0, three.1, three.2] {
        assert_eq!(answer.expect("an answer"), "met");
    }
}

/// The error message of a failed invocation.
fn message(failed: Result<Value, InvokeError>) -> String {
    match failed {
        Err(InvokeError::Function { error, .. }) => error["errorMessage"].to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn failures_are_distinguished() {
    let (_folder, functions) = start(Duration::from_secs(20)).await;
    let failed = functions.invoke("echo", &json!({ "do": "fail" })).await;
    assert_eq!(message(failed), "\"to fail\"");
    let unknown = functions.invoke("nobody", &json!({})).await;
    assert!(matches!(unknown, Err(InvokeError::Unknown { .. })), "{unknown:?}");
    let large = functions.invoke("echo", &json!("x".repeat(7_000_000))).await;
    assert!(matches!(large, Err(InvokeError::TooLarge { .. })), "{large:?}");
    let large = functions.invoke("echo", &json!({ "do": "answer", "bytes": 7_000_000 })).await;
    assert!(message(large).contains("7000002 bytes"));

    // Both processes end, so a new one answers.
    let end = json!({ "do": "end" });
    let ended = tokio::join!(functions.invoke("echo", &end), functions.invoke("echo", &end));
    for ended in [ended.0, ended.1] {
        assert_eq!(message(ended), "\"its process ended before it answered\"");
    }
    let answer = functions.invoke("echo", &json!(1)).await.expect("a new process");
    assert_eq!(answer["payload"], 1);
}

#[tokio::test]
async fn a_process_that_is_late_is_killed_and_another_takes_its_place() {
    let (folder, functions) = start(Duration::from_secs(2)).await;
    let place = folder.path().join("place");
    fs::create_dir(&place).expect("a folder");
    let processes = || fs::read_dir(&place).expect("a folder").map(|file| file.expect("a process"));
    let pause = || tokio::time::sleep(Duration::from_millis(5));
    // They wait for a third one, which never starts.
    let meet = json!({ "do": "meet", "at": place });
    let left = async {
        tokio::select! {
            answer = functions.invoke("echo", &meet) => panic!("{answer:?}"),
            () = async { while processes().count() < 2 { pause().await } } => {}
        }
    };
    let (late, ()) = tokio::join!(functions.invoke("echo", &meet), left);
    assert!(matches!(late, Err(InvokeError::TimedOut { .. })), "{late:?}");
    for process in processes() {
        let process = std::path::Path::new("/proc").join(process.file_name());
        let ended = async {
            while process.exists() {
                pause().await
            }
        };
        tokio::time::timeout(Duration::from_secs(20), ended).await.expect("it is killed");
    }
    for n in 0..4 {
        assert_eq!(functions.invoke("echo", &json!(n)).await.expect("an answer")["payload"], n);
    }
}

#[tokio::test]
async fn clients_of_aws_invoke_over_http_and_websites_do_not() {
    let (_folder, functions) = start(Duration::from_secs(20)).await;
    let client = reqwest::Client::new();
    let post = |function: &str, payload: Value, origin: Option<&str>| {
        let url = format!("{}/2015-03-31/functions/{function}/invocations", functions.endpoint());
        let request = client.post(url).body(payload.to_string());
        let request = origin.into_iter().fold(request, |it, origin| it.header("origin", origin));
        async {
            let answer = request.send().await.expect("an answer");
            let failed = answer.headers().contains_key("x-amz-function-error");
            (answer.status().as_u16(), failed, answer.text().await.expect("its text"))
        }
    };
    let (status, failed, text) = post("echo", json!({ "text": "ä" }), None).await;
    assert!(
        (status, failed) == (200, false) && text.contains("\"payload\":{\"text\":\"ä\"}"),
        "{text}"
    );
    let (status, failed, text) = post("echo", json!({ "do": "fail" }), None).await;
    assert!((status, failed) == (200, true) && text.contains("to fail"), "{text}");
    let (status, _, text) = post("nobody", json!(1), None).await;
    assert!(status == 404 && text.contains("there is no function nobody"), "{status} {text}");
    let (status, ..) = post("echo", json!("x".repeat(7_000_000)), None).await;
    assert_eq!(status, 413);
    let (status, ..) = post("echo", json!(1), Some("http://evil.example")).await;
    assert_eq!(status, 403);
}
