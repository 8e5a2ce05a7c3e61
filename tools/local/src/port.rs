//! The ports of a stack. Only one stack can have the port of an API, and a second one reports which stack has it.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use axum::{
    Router,
    http::{HeaderValue, header::SERVER},
    middleware::map_response,
    response::Response,
};
use reqwest::redirect::Policy;
use socket2::{Domain, Socket, Type};
use tokio::{net::TcpListener, task::JoinSet};

use crate::guard::guarded;

/// The beginning of a stack's `server` header.
const NAME: &str = "ringfence-local";

/// The most connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// The longest wait for an answer of the program that has a port.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(1);

/// The console's port is the API's plus this number.
const CONSOLE_AFTER_API: u16 = 10;

/// The port of the console for an API at this port. For an API at any free port it is any free port.
///
/// # Errors
/// There is no such port.
pub(crate) fn of_console(api: u16) -> Result<u16> {
    let port = if api == 0 { Some(0) } else { api.checked_add(CONSOLE_AFTER_API) };
    port.with_context(|| {
        format!(
            "the console's port is the API's plus {CONSOLE_AFTER_API}, which {api} leaves no room for: give the API a \
             lower port"
        )
    })
}

/// Listens at a port of the loopback address, for `what`; 0 chooses a free port.
///
/// # Errors
/// The port is taken. The message names the program that has it.
pub(crate) async fn listen(what: &str, port: u16) -> Result<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match TcpListener::bind(address).await {
        Err(error) if error.kind() == ErrorKind::AddrInUse => bail!(
            "port {port}, {what}, is taken by {}: stop it, or start this stack beside it with `--port` and \
             another port, or with `cargo local --port 0`, which takes free ports",
            occupant(address).await
        ),
        bound => bound.with_context(|| format!("cannot listen on {address}")),
    }
}

/// Listens at a free port of an address at which containers reach this machine. Podman makes the bridge with this
/// address when its first container starts, so the address need not exist yet.
///
/// # Errors
/// It can't listen there.
pub(crate) fn listen_for_containers(address: Ipv4Addr) -> Result<TcpListener> {
    let listen = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        #[cfg(target_os = "linux")]
        socket.set_freebind_v4(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SocketAddr::from((address, 0)).into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into())
    };
    listen()
        .with_context(|| format!("cannot listen on {address}, where containers reach this stack"))
}

/// Serves routes at a port of this stack, all under the guard.
pub(crate) fn serve(tasks: &mut JoinSet<()>, listener: TcpListener, router: Router) {
    let service = guarded(router).into_make_service_with_connect_info::<SocketAddr>();
    tasks.spawn(async move {
        // axum's server retries every error of its listener, and ends with the task.
        let _ = axum::serve(listener, service).await;
    });
}

/// Adds a header to each answer of the API that names this process and its workspace.
pub(crate) fn named(api: Router, root: &Path) -> Router {
    let name = format!("{NAME} (process {}, {})", process::id(), root.display());
    // A header can't have a path with a control character.
    let name = HeaderValue::try_from(name).unwrap_or(HeaderValue::from_static(NAME));
    api.layer(map_response(move |mut response: Response| {
        response.headers_mut().insert(SERVER, name.clone());
        std::future::ready(response)
    }))
}

async fn occupant(address: SocketAddr) -> String {
    // A stack redirects the path `/` to its console, which is at another port.
    let client = reqwest::Client::builder().no_proxy().redirect(Policy::none());
    let client = client.timeout(ANSWER_WAIT_MAX).build();
    let answer = match client {
        Ok(client) => client.get(format!("http://{address}/")).send().await.ok(),
        Err(_) => None,
    };
    let Some(answer) = answer else {
        return "a program that does not answer, perhaps a stack that still builds its functions"
            .into();
    };
    let server = answer.headers().get(SERVER).map(|name| String::from_utf8_lossy(name.as_bytes()));
    match server {
        Some(name) if name.starts_with(NAME) => format!("the stack of {name}"),
        _ => "another program".into(),
    }
}

#[cfg(test)]
mod tests {
    use axum::{response::Redirect, routing::get};

    use super::*;

    async fn taken() -> (TcpListener, u16) {
        let listener = listen("the API's", 0).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        (listener, port)
    }

    async fn refusal(port: u16) -> String {
        format!("{:#}", listen("the console's", port).await.expect_err("the port is taken"))
    }

    /// The error that a second stack gets for the port of this API.
    async fn refusal_beside(api: Router) -> String {
        let (listener, port) = taken().await;
        tokio::spawn(async { axum::serve(listener, api).await });
        refusal(port).await
    }

    #[tokio::test]
    async fn a_taken_port_names_the_process_and_the_workspace_of_its_stack() {
        let elsewhere = get(async || Redirect::to("http://127.0.0.1:9/"));
        let api = Router::new().route("/", elsewhere);
        let refusal = refusal_beside(named(api, Path::new("/srv/shop"))).await;
        let name = format!("ringfence-local (process {}, /srv/shop)", process::id());
        assert!(refusal.contains(&name) && refusal.contains(", the console's, "), "{refusal}");
        assert!(refusal.contains("cargo local --port 0"), "{refusal}");
    }

    #[test]
    fn the_console_has_the_tenth_port_after_the_apis() {
        assert_eq!(of_console(3000).expect("a port"), 3010);
        assert_eq!(of_console(0).expect("a port"), 0);
        let error = of_console(65_530).expect_err("no such port").to_string();
        assert!(error.contains("give the API a lower port"), "{error}");
    }

    #[tokio::test]
    async fn a_port_of_another_program_is_said_to_be_so() {
        let refusal = refusal_beside(Router::new()).await;
        assert!(refusal.contains("taken by another program"), "{refusal}");
    }

    #[tokio::test]
    async fn a_bridge_that_is_not_there_yet_can_be_listened_at() {
        // An address for documentation, which no machine has.
        let address = Ipv4Addr::new(198, 51, 100, 1);
        let listener = listen_for_containers(address).expect("a listener");
        assert_eq!(listener.local_addr().expect("an address").ip(), address);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_port_may_belong_to_a_stack_that_builds() {
        let (_listener, port) = taken().await;
        let refusal = refusal(port).await;
        assert!(refusal.contains("does not answer"), "{refusal}");
    }
}
