//! Requests to servers and proxies of this machine.

use std::future::pending;

use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, ResolveDnsError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::trust::tests::{SERVER, file, server_config};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

/// The reaction of a server to a connection, after it has read a part.
#[derive(Clone, Copy, Debug)]
enum Does {
    Answer,
    Close,
    Wait,
    /// Opens a connection to the server that the request names.
    Tunnel,
}

/// A server at a new port.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts it. Either all of its connections have TLS, or none.
    async fn start(does: Does, has_tls: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let server = Self { port, heads: Arc::clone(&heads) };
        let tls = has_tls.then(|| TlsAcceptor::from(Arc::new(server_config(&[SERVER]))));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, heads) = (tls.clone(), Arc::clone(&heads));
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, does, &heads).await,
                        Some(tls) => {
                            serve(tls.accept(stream).await.expect("TLS"), does, &heads).await;
                        }
                    }
                });
            }
        });
        server
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://user:pass@127.0.0.1:{}", self.port)
    }

    /// The beginning of each request: its first line, and its credentials for a proxy.
    fn heads(&self) -> Vec<String> {
        std::mem::take(&mut *self.heads.lock().expect("no panic"))
    }
}

async fn serve(
    mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    does: Does,
    heads: &Mutex<Vec<String>>,
) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut bytes).await.is_ok_and(|read| read == 0) {
            return;
        }
    }
    let head = String::from_utf8(bytes).expect("a head is a text");
    let mut lines = head.lines();
    let first = lines.next().expect("a request line").to_owned();
    let shown = lines.find(|line| line.to_ascii_lowercase().starts_with("proxy-authorization"));
    let shown = shown.and_then(|line| line.split_once(": ")).map_or("", |(_, shown)| shown);
    heads.lock().expect("no panic").push(format!("{first} {shown}").trim_end().to_owned());
    match does {
        Does::Answer => stream.write_all(ANSWER).await.expect("it is read"),
        Does::Close => {}
        Does::Wait => pending().await,
        Does::Tunnel => {
            let to = first.split(' ').nth(1).expect("a host and a port");
            let mut server = TcpStream::connect(to).await.expect("a server");
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("it is read");
            copy_bidirectional(&mut stream, &mut server).await.ok();
        }
    }
}

fn trust() -> Trust {
    Trust::of_machine().or_bundle(Some(file("private-root.pem"))).expect("a certificate")
}

async fn get(connector: &SharedHttpConnector, url: &str) -> Result<u16, ConnectorError> {
    let mut request = HttpRequest::empty();
    request.set_uri(url).expect("a URL");
    Ok(connector.call(request).await?.status().as_u16())
}

#[tokio::test]
async fn requests_go_through_the_proxy_of_their_scheme() {
    const SHOWN: &str = "Basic dXNlcjpwYXNz";
    for has_tls in [false, true] {
        let scheme = if has_tls { "https" } else { "http" };
        let (plain, tunnel) = (
            Server::start(Does::Answer, has_tls).await,
            Server::start(Does::Tunnel, has_tls).await,
        );
        let proxies = Matcher::builder().http(plain.url(scheme)).https(tunnel.url(scheme));
        let proxies = proxies.no("localhost").build();
        let connector = connector(&trust(), proxies, TimeLimits::default(), None);

        assert_eq!(get(&connector, "http://shop.example/a?b").await.expect("an answer"), 200);
        let forwarded = format!("GET http://shop.example/a?b HTTP/1.1 {SHOWN}");
        assert_eq!(plain.heads(), [forwarded]);

        let server = Server::start(Does::Answer, true).await;
        let url = format!("https://127.0.0.1:{}/a", server.port);
        assert_eq!(get(&connector, &url).await.expect("an answer"), 200);
        assert_eq!(server.heads(), ["GET /a HTTP/1.1"], "the server sees no credentials");
        let tunnelled = format!("CONNECT 127.0.0.1:{} HTTP/1.1 {SHOWN}", server.port);
        assert_eq!(tunnel.heads(), [tunnelled]);

        let server = Server::start(Does::Answer, false).await;
        let url = format!("http://localhost:{}/a", server.port);
        assert_eq!(get(&connector, &url).await.expect("an answer"), 200);
        assert_eq!(server.heads(), ["GET /a HTTP/1.1"], "no proxy is for this host");
    }
    let proxies = Matcher::builder().all("socks5://127.0.0.1:1").build();
    let connector = connector(&trust(), proxies, TimeLimits::default(), None);
    let error = get(&connector, "https://shop.example").await.expect_err("no such proxy");
    assert!(format!("{error:?}").contains("socks5://127.0.0.1 is no URL of HTTP"), "{error:?}");
}

/// Knows no name.
#[derive(Debug)]
struct Nowhere;

impl ResolveDns for Nowhere {
    fn resolve_dns<'a>(&'a self, _: &'a str) -> DnsFuture<'a> {
        DnsFuture::ready(Err(ResolveDnsError::new(io::Error::other("no such name"))))
    }
}

#[tokio::test]
async fn an_error_is_of_its_kind_and_says_whether_there_was_a_connection() {
    let [closes, waits] = [Does::Close, Does::Wait].map(|does| Server::start(does, false));
    let (closes, waits) = (closes.await.port, waits.await.port);
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent_port = silent.local_addr().expect("an address").port();
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr();
    let free = free.expect("an address").port();
    let (none, limit) = (TimeLimits::default(), Some(Duration::from_millis(20)));
    let connect = TimeLimits { connect: limit, answer: None };
    let answer = TimeLimits { connect: None, answer: limit };
    for (url, limits, kind, is_connect) in [
        (format!("http://127.0.0.1:{free}"), none, "io", true),
        ("http://shop.example".to_owned(), none, "io", true),
        ("ftp://127.0.0.1".to_owned(), none, "io", true),
        (format!("https://127.0.0.1:{silent_port}"), connect, "timeout", true),
        (format!("http://127.0.0.1:{waits}"), answer, "timeout", false),
        (format!("http://127.0.0.1:{closes}"), none, "transient", false),
        ("/a".to_owned(), none, "other", false),
    ] {
        let resolver = Some(SharedDnsResolver::new(Nowhere));
        let connector = connector(&trust(), no_proxy(), limits, resolver);
        let error = get(&connector, &url).await.expect_err("no answer");
        let found = match error.as_other() {
            Some(ErrorKind::TransientError) => "transient",
            _ if error.is_io() => "io",
            _ if error.is_timeout() => "timeout",
            _ if error.is_user() => "user",
            _ => "other",
        };
        let connect = cause::<ClientError>(&error).is_some_and(ClientError::is_connect);
        assert_eq!((found, connect), (kind, is_connect), "{url}: {error:?}");
    }
}
