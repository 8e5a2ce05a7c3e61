//! Where the embedded DynamoDB listens, and which threads it has.

use std::{io, net::Ipv4Addr, thread};

use dynoxide::Database;
use tokio::{net::TcpListener, runtime, sync::oneshot};

use crate::clock;

/// How many requests the engine of a stack has at once: more than one function can send. It uses its tables for one at a
/// time. The threads share the processors, so that a small request is read and answered beside a large one.
const THREADS: usize = 16;

/// A free loopback port. The engine itself answers any website, so on Linux the port is at an address that no website
/// can guess. Other systems have a single address.
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
        // The signal is an error, which means that the sender is gone.
        let _ = stopped.await;
    };
    let _ = dynoxide::server::serve_with_shutdown(listener, database, stop).await;
}

/// In the runtime of the caller.
pub(crate) fn beside(
    listener: TcpListener,
    database: Database,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    tokio::spawn(served(listener, database, stopped));
    Ok(())
}

/// In a runtime with threads of its own. The engine computes, and in the caller's runtime nothing else would go on
/// meanwhile.
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
