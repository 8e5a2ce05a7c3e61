//! The address at which containers reach this machine: the address of the container engine's bridge.

use std::{ffi::OsString, net::Ipv4Addr, time::Duration};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The engine's socket if `DOCKER_HOST` is not set, as for the SAM CLI.
const SOCKET_DEFAULT: &str = "unix:///var/run/docker.sock";

/// The longest wait for the engine's answer.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);

/// Asks the engine that the SAM CLI would use; `docker_host` is the variable `DOCKER_HOST`.
///
/// # Errors
/// There is no engine, or its containers can't reach a listener on this machine.
pub async fn address(docker_host: Option<OsString>) -> Result<Ipv4Addr> {
    if !cfg!(target_os = "linux") {
        bail!(
            "--sam works on Linux only: elsewhere containers can't run the functions that are \
             built for this machine"
        );
    }
    let given = docker_host.filter(|host| !host.is_empty());
    let host = given.unwrap_or_else(|| SOCKET_DEFAULT.into());
    let host = host.to_str().context("DOCKER_HOST is not a string")?;
    let Some(socket) = host.strip_prefix("unix://") else {
        bail!(
            "--sam needs a container engine on this machine, and DOCKER_HOST is {host}: set it to \
             the engine's socket (unix:///…), or unset it for {SOCKET_DEFAULT}"
        );
    };
    let client = reqwest::Client::builder()
        .unix_socket(socket)
        .timeout(ANSWER_WAIT_MAX)
        .build()
        .context("cannot ask the container engine")?;
    let info = ask(&client, host, "info").await?;
    // Docker lists it among the options, and Podman has a field.
    let options = info["SecurityOptions"].as_array().into_iter().flatten();
    let mut options = options.filter_map(Value::as_str);
    if info["Rootless"] == true || options.any(|option| option.starts_with("name=rootless")) {
        bail!(
            "the container engine at {host} runs without root, so its bridge is not on this \
             machine: --sam needs one that runs as root"
        );
    }
    let network = ask(&client, host, "networks/bridge").await?;
    let subnets = network["IPAM"]["Config"].as_array().into_iter().flatten();
    let mut gateways = subnets.filter_map(|subnet| subnet["Gateway"].as_str()?.parse().ok());
    gateways.next().with_context(|| {
        format!("the container engine at {host} names no IPv4 gateway of its network \"bridge\"")
    })
}

/// An answer of the engine's API.
async fn ask(client: &reqwest::Client, host: &str, path: &str) -> Result<Value> {
    let answer = async {
        // The host is ignored: every request goes to the socket.
        let url = format!("http://engine/{path}");
        client.get(url).send().await?.error_for_status()?.json().await
    };
    answer.await.with_context(|| {
        format!(
            "no container engine answers at {host}: --sam needs Docker, or Podman with \
             `podman system service`, running as root; if its socket is another, set DOCKER_HOST"
        )
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use axum::{Json, Router, routing::get};
    use serde_json::json;
    use tokio::net::UnixListener;

    use super::*;

    /// The address or the refusal, for an engine with these answers.
    async fn asked(info: Value, network: Value) -> Result<Ipv4Addr> {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let engine = Router::new()
            .route("/info", get(|| async { Json(info) }))
            .route("/networks/bridge", get(|| async { Json(network) }));
        let engine = tokio::spawn(async { axum::serve(listener, engine).await });
        let learnt = address(Some(format!("unix://{}", socket.display()).into())).await;
        engine.abort();
        learnt
    }

    fn network() -> Value {
        json!({ "IPAM": { "Config": [
            { "Subnet": "fd00::/64", "Gateway": "fd00::1" },
            { "Subnet": "172.17.0.0/16", "Gateway": "172.17.0.1" },
        ] } })
    }

    #[track_caller]
    fn check_refused(learnt: Result<Ipv4Addr>, parts: &[&str]) {
        let refusal = format!("{:#}", learnt.expect_err("a refusal"));
        for part in parts {
            assert!(refusal.contains(part), "{part}: {refusal}");
        }
    }

    #[tokio::test]
    async fn containers_reach_this_machine_at_the_ipv4_gateway_of_the_engines_bridge() {
        let options = json!({ "SecurityOptions": ["name=seccomp,profile=builtin"] });
        let learnt = asked(options, network()).await.expect("an address");
        assert_eq!(learnt, Ipv4Addr::new(172, 17, 0, 1));
    }

    #[tokio::test]
    async fn an_engine_without_root_is_refused() {
        let docker = json!({ "SecurityOptions": ["name=seccomp", "name=rootless"] });
        let podman = json!({ "SecurityOptions": [], "Rootless": true });
        for info in [docker, podman] {
            check_refused(asked(info, network()).await, &["runs without root", "needs one that"]);
        }
    }

    #[tokio::test]
    async fn a_bridge_without_a_gateway_is_refused() {
        let learnt = asked(json!({}), json!({ "IPAM": { "Config": [] } })).await;
        check_refused(learnt, &["names no IPv4 gateway"]);
    }

    #[tokio::test]
    async fn without_an_engine_the_refusal_names_the_socket_and_the_way_out() {
        let learnt = address(Some("unix:///nowhere/engine.sock".into())).await;
        check_refused(
            learnt,
            &["unix:///nowhere/engine.sock", "Docker, or Podman", "set DOCKER_HOST"],
        );
    }

    #[tokio::test]
    async fn an_engine_on_another_machine_is_refused() {
        let learnt = address(Some("tcp://build.example.com:2375".into())).await;
        check_refused(learnt, &["tcp://build.example.com:2375", "on this machine", "unset it"]);
    }
}
