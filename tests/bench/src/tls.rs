//! A store behind TLS on this machine's loopback, so that a command's time has the encryption and the system calls of
//! its requests. The server runs on a thread of its own, whose time does not count.

use std::net::{Ipv4Addr, TcpListener as Listener};
use std::sync::Arc;
use std::thread;

use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use rcgen::CertifiedKey;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::store::Store;

/// Serves the store with TLS. Returns its URL, and an HTTP client that trusts it.
pub(crate) fn serve(store: Store) -> (String, SharedHttpClient) {
    let host = "localhost";
    let certified = rcgen::generate_simple_self_signed([host.to_owned()]).expect("a certificate");
    let CertifiedKey { cert, signing_key } = certified;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth();
    let config =
        config.with_single_cert(vec![cert.der().clone()], key).expect("they belong together");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(accept(listener, acceptor, store));
    });
    let trusted = TrustStore::empty().with_pem_certificate(cert.pem());
    let context = TlsContext::builder().with_trust_store(trusted).build().expect("a certificate");
    let client = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring));
    (format!("https://{host}:{port}"), client.tls_context(context).build_https())
}

async fn accept(listener: Listener, acceptor: TlsAcceptor, store: Store) {
    listener.set_nonblocking(true).expect("it can be");
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, acceptor.clone(), store.clone()));
    }
}

/// Answers the requests of a connection until it ends.
async fn answer(stream: TcpStream, acceptor: TlsAcceptor, store: Store) {
    stream.set_nodelay(true).expect("it can be");
    let mut stream = acceptor.accept(stream).await.expect("the client trusts the server");
    let mut bytes = Vec::new();
    loop {
        let head = loop {
            match bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => match stream.read_buf(&mut bytes).await {
                    Ok(1..) => {}
                    _ => return,
                },
            }
        };
        let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
        let header = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let length = header("content-length: ").expect("a length").parse().expect("a number");
        let target = header("x-amz-target: ").expect("an operation");
        while bytes.len() - head < length {
            stream.read_buf(&mut bytes).await.expect("the rest of the body");
        }
        let operation = target.rsplit('.').next().unwrap_or_default();
        let body = store.answer(operation, &bytes[head..head + length]);
        let body = body.bytes().expect("it is in memory");
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), body].concat()).await.expect("it is read");
        stream.flush().await.expect("it is read");
        bytes.clear();
    }
}
