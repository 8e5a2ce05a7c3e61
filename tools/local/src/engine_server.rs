//! The port and the threads of the embedded DynamoDB.

use std::{io, net::Ipv4Addr, thread};

use dynoxide::Database;
use tokio::{net::TcpListener, runtime, sync::oneshot};

use crate::clock;

/// The engine of a stack handles this many requests at once, because several functions send requests. It uses its
/// tables for one at a time. The threads share the processors, so a small request is read and answered beside a large
/// one.
const THREADS: usize = 16;

/// A free loopback port. The engine answers every website, so on Linux the port is at an address that no website can
/// guess. Other systems have only one address.
pub(crate) async fn hidden() -> io::Result<TcpListener> {
    match TcpListener::bind((clock::loopback(), 0)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await,
    }
}

/// Serves the engine until the sender is gone.
pub(crate) type Serve = fn(TcpListener, Database, oneshot::Receiver<()>) -> io::Result<()>;

async fn served(listener: TcpListener, database: Database, stopped: oneshot::Receiver<()>) {
    let stop = async {
        // The signal is an error: the sender is gone.
        let _ = stopped.await;
    };
    let _ = dynoxide::server::serve_with_shutdown(listener, database, stop).await;
}

/// Serves in the runtime of the caller.
pub(crate) fn beside(
    listener: TcpListener,
    database: Database,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    tokio::spawn(served(listener, database, stopped));
    Ok(())
}

/// Serves in a separate runtime with its threads. The engine computes, and would block the caller's runtime.
pub(crate) fn apart(
    listener: TcpListener,
    database: Database,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = listener.into_std()?;
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("dynamodb")
        .enable_all()
        .build()?;
    let serve = async move {
        let listener = TcpListener::from_std(listener).expect("the runtime has I/O");
        served(listener, database, stopped).await;
    };
    thread::Builder::new().spawn(move || runtime.block_on(serve)).map(drop)
}
