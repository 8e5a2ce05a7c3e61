//! A function for the tests of the local stack: only the runtime API's loop. It answers with its payload and its
//! environment. On request it fails, exits, gives a long answer, or waits until two other invocations run at the same
//! time.

use std::{collections::BTreeMap, env, path::Path, time::Duration};

use anyhow::{Context, Result};
use serde_json::{Value, json};

fn main() -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve())
}

async fn serve() -> Result<()> {
    let environment: BTreeMap<_, _> = env::vars().collect();
    let api = environment.get("AWS_LAMBDA_RUNTIME_API").context("no runtime API")?;
    let api = format!("{api}/2018-06-01/runtime/invocation");
    let client = reqwest::Client::new();
    loop {
        let next = client.get(format!("{api}/next")).send().await?;
        let id = next.headers().get("lambda-runtime-aws-request-id").context("no request id")?;
        let id = id.to_str()?.to_owned();
        let payload: Value = serde_json::from_str(&next.text().await?)?;
        let (path, answer) = match payload["do"].as_str() {
            Some("fail") => ("error", json!({ "errorType": "Told", "errorMessage": "to fail" })),
            Some("end") => std::process::exit(1),
            Some("answer") => {
                let bytes = payload["bytes"].as_u64().context("no number of bytes")?;
                ("response", json!("x".repeat(bytes.try_into()?)))
            }
            Some("meet") => {
                meet(Path::new(payload["at"].as_str().context("no place")?)).await?;
                ("response", json!("met"))
            }
            _ => ("response", json!({ "payload": payload, "environment": environment })),
        };
        client.post(format!("{api}/{id}/{path}")).body(answer.to_string()).send().await?;
    }
}

/// Writes a file for this process and waits for the files of two others.
async fn meet(place: &Path) -> Result<()> {
    std::fs::write(place.join(std::process::id().to_string()), "")?;
    while std::fs::read_dir(place)?.count() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
