//! A store behind TLS on the loopback address, so a command's time includes the encryption and the system calls of its
//! requests. Each connection has its thread, whose time does not count.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{SharedHttpClient, http_client_fn};
use ringfence_aws::Trust;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::store::Store;

const ROOT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/aws/src/trust/private-root.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../shared/aws/src/trust/server.pem");
const KEY: &[u8] = include_bytes!("../../../shared/aws/src/trust/server.key");

/// A client of the store over TLS.
pub(crate) fn client(store: &Store) -> Client {
    let (url, http) = serve(store.clone());
    store.client_at(&url, http)
}

/// Serves the store with TLS. Returns its URL, and an HTTP client that trusts it.
fn serve(store: Store) -> (String, SharedHttpClient) {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    let config = Arc::new(config.expect("the key of the certificate"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for socket in listener.incoming() {
            let (socket, config) = (socket.expect("a connection"), Arc::clone(&config));
            let store = store.clone();
            thread::spawn(move || answer(socket, config, &store));
        }
    });
    let connector = Trust::of_machine().or_bundle(Some(ROOT)).expect("a certificate").connector();
    (url, http_client_fn(move |_, _| connector.clone()))
}

/// Answers the requests of a connection until it ends.
fn answer(socket: TcpStream, config: Arc<ServerConfig>, store: &Store) {
    socket.set_nodelay(true).expect("it can be");
    let session = ServerConnection::new(config).expect("a session");
    let mut stream = StreamOwned::new(session, socket);
    let (mut bytes, mut page) = (Vec::new(), vec![0; 64 * 1_024]);
    loop {
        while let Some((operation, body)) = request(&bytes) {
            let answer = store.answer(operation, body);
            let body = answer.bytes().expect("it is in memory");
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), body].concat()).expect("it is read");
            stream.flush().expect("it is read");
            // A client sends its next request after the answer.
            bytes.clear();
        }
        match stream.read(&mut page) {
            Ok(read @ 1..) => bytes.extend_from_slice(&page[..read]),
            _ => return,
        }
    }
}

/// Operation and body of a request, once it is complete.
fn request(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = str::from_utf8(&bytes[..end]).expect("a head is a text");
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let length: usize = header("content-length: ")?.parse().expect("a number");
    let operation = header("x-amz-target: ")?.rsplit('.').next()?;
    Some((operation, bytes.get(end + 4..end + 4 + length)?))
}
