//! Clients against a server of this machine, which shows a certificate of a private root for `127.0.0.1`.
//!
//! `openssl ca` made the certificates: `expired.pem` was valid on 2020-01-01, the others are until 2120.
//! `intermediate.pem` signed `leaf.pem`, and `other-root.pem` signed `intermediate.pem`.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, Stream};
use sha2::{Digest, Sha256};

use super::*;
use crate::{client_of, sdk_config_of};

pub(crate) const SERVER: &[u8] = include_bytes!("server.pem");
const EXPIRED: &[u8] = include_bytes!("expired.pem");
const LEAF: &[u8] = include_bytes!("leaf.pem");
const INTERMEDIATE: &[u8] = include_bytes!("intermediate.pem");
const KEY: &[u8] = include_bytes!("server.key");

/// The path of a file beside this one.
pub(crate) fn file(name: &str) -> String {
    format!("{}/src/trust/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The settings of a server that shows these certificates.
pub(crate) fn server_config(certificates: &[&[u8]]) -> ServerConfig {
    let certificate = |pem: &&[u8]| CertificateDer::from_pem_slice(pem).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(certificates.iter().map(certificate).collect(), key)
        .expect("the key of the certificate")
}

/// Shows these certificates, and refuses the one request that it gets. Returns its port.
fn server(certificates: &[&[u8]]) -> u16 {
    let config = server_config(certificates);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        let mut tls = ServerConnection::new(Arc::new(config)).expect("a session");
        let mut stream = Stream::new(&mut tls, &mut socket);
        // A client that does not trust the server closes the connection.
        if stream.read(&mut [0; 4_096]).is_ok() {
            let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}";
            stream.write_all(answer).expect("the client reads");
        }
    });
    port
}

/// The answer of the server at this host to a function's client: an HTTP status, or why there is none.
async fn ask(shows: &[&[u8]], host: &str, bundle: Option<&str>) -> Result<u16, String> {
    let variables = [
        ("AWS_REGION", "eu-west-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        ("AWS_ENDPOINT_URL_DYNAMODB", format!("https://{host}:{}", server(shows))),
        (CA_BUNDLE, bundle.map(file).unwrap_or_default()),
    ];
    let variables: BTreeMap<_, _> = variables.map(|(name, value)| (name.to_owned(), value)).into();
    let client = client_of(&sdk_config_of(variables).expect("a configuration"));
    let error = client.describe_endpoints().send().await.expect_err("a refusal");
    match error.raw_response() {
        Some(answer) => Ok(answer.status().as_u16()),
        None => Err(format!("{error:?}")),
    }
}

#[tokio::test]
async fn only_the_roots_of_amazon_are_trusted_unless_a_bundle_names_others() {
    let (address, private, other) = ("127.0.0.1", Some("private-root.pem"), Some("other-root.pem"));
    for (shows, bundle) in [(&[SERVER][..], private), (&[LEAF, INTERMEDIATE], other)] {
        assert_eq!(ask(shows, address, bundle).await, Ok(400), "{bundle:?}");
    }
    for (shows, host, bundle, cause) in [
        (SERVER, address, None, "UnknownIssuer"),
        (SERVER, address, other, "UnknownIssuer"),
        (LEAF, address, other, "UnknownIssuer"),
        (EXPIRED, address, private, "Expired"),
        (SERVER, "localhost", private, "NotValidForName"),
    ] {
        let error = ask(&[shows], host, bundle).await.expect_err("a server that is not trusted");
        assert!(error.contains(cause), "{host}, {bundle:?}: {error}");
    }
}

/// A proxy that connects its user to servers. Returns its port, and counts the connections.
fn proxy() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut head) = (client.expect("a connection"), Vec::new());
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).expect("the head of a request");
                head.extend(byte);
            }
            let head = String::from_utf8(head).expect("text");
            let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
            assert!(head.contains(": Basic bWU6cHc=\r\n"), "{head}");
            let server = TcpStream::connect(target.expect("a server")).expect("a connection");
            client.write_all(b"HTTP/1.1 200 -\r\n\r\n").expect("the client reads");
            counter.fetch_add(1, Ordering::SeqCst);
            for (from, to) in [(&client, &server), (&server, &client)] {
                let mut ends = [from, to].map(|end| end.try_clone().expect("a socket"));
                std::thread::spawn(move || {
                    let [from, to] = &mut ends;
                    drop(io::copy(from, to));
                    drop(to.shutdown(Shutdown::Write));
                });
            }
        }
    });
    (port, count)
}

/// Runs the test above on a machine that trusts the private root, and reaches servers through a proxy.
#[test]
fn the_machines_roots_are_not_trusted_and_its_proxy_is_used() {
    let program = std::env::current_exe().expect("the test");
    let test = "trust::tests::only_the_roots_of_amazon_are_trusted_unless_a_bundle_names_others";
    let (port, count) = proxy();
    let status = std::process::Command::new(program)
        .args([test, "--exact"])
        .env("SSL_CERT_FILE", file("private-root.pem"))
        .env("HTTPS_PROXY", format!("http://me:pw@127.0.0.1:{port}"))
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .env_remove("https_proxy")
        .status();
    assert!(status.expect("a program").success());
    assert_eq!(count.load(Ordering::SeqCst), 7, "each request went through the proxy");
}

#[test]
fn a_bundle_that_is_no_file_of_certificates_is_an_error_that_says_so() {
    for (name, cause) in
        [("absent.pem", "No such file"), ("server.key", "no certificate"), ("", "directory")]
    {
        let error = Trust::of_amazon().or_bundle(Some(file(name))).expect_err("an error");
        let cause_found = error.source().expect("a cause").to_string();
        assert!(cause_found.contains(cause), "{name}: {cause_found}");
        assert!(error.to_string().contains(&file(name)), "{error}");
    }
    let cut = [AMAZON, &SERVER[..200]].concat();
    let error = roots_of(&cut).expect_err("the last one is cut").to_string();
    assert!(error.contains("certificate 6 can't be read"), "{error}");
}

/// Amazon Trust Services publishes these hashes of the roots' public keys.
#[test]
fn the_roots_of_amazon_are_the_five_that_it_publishes() {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(AMAZON) {
        roots.add(certificate.expect("PEM")).expect("a root certificate");
    }
    let hash = |root: &rustls::pki_types::TrustAnchor<'_>| {
        let key = &root.subject_public_key_info;
        let header = match u8::try_from(key.len()) {
            Ok(short @ ..0x80) => vec![0x30, short],
            Ok(length) => vec![0x30, 0x81, length],
            Err(_) => [&[0x30, 0x82], &key.len().to_be_bytes()[6..]].concat(),
        };
        let hash = Sha256::new().chain_update(header).chain_update(key).finalize();
        hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let hashes: Vec<_> = roots.roots.iter().map(hash).collect();
    let published = [
        "fbe3018031f9586bcbf41727e417b7d1c45c2f47f93be372a17b96b50757d5a2",
        "7f4296fc5b6a4e3b35d3c369623e364ab1af381d8fa7121533c9d6c633ea2461",
        "36abc32656acfc645c61b71613c4bf21c787f5cabbee48348d58597803d7abc9",
        "f7ecded5c66047d28ed6466b543c40e0743abe81d109254dcf845d4c2c7853c5",
        "2b071c59a0a0ae76b0eadb2bad23bad4580b69c3601b630c2eaf0613afa83f92",
    ];
    assert_eq!(hashes, published);
}
