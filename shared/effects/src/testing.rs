//! Servers on this machine for the tests: one of HTTP, and one of SMTP, with the crate `mailin`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use aws_types::SdkConfig;
use mailin::{Action, AuthMechanism, Handler, Response, SessionBuilder, response};
use ringfence_aws::{AwsService, Clock, Trust, sdk_config_of};
use ringfence_core::{BoundaryId, SequencedEvent};
use ringfence_reactors::Delivery;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::secret::Secret;

/// The name of each delivery that the tests make.
pub(crate) fn event() -> SequencedEvent {
    SequencedEvent::gap(BoundaryId::stored("orderId:o1"), 1, 0)
}

/// The first delivery of the event.
pub(crate) fn delivery(event: &SequencedEvent) -> Delivery<'_> {
    Delivery::new("confirm-order", event, 0)
}

/// The path of a certificate that the tests of `Trust` have.
fn file(name: &str) -> String {
    format!("{}/../aws/src/trust/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Trusts the root of `server.pem` and `expired.pem`, or another one.
pub(crate) fn trust(root: &str) -> Trust {
    Trust::of_machine().or_bundle(Some(file(root))).expect("certificates")
}

/// The configuration of clients of AWS, all of which find the server at this address.
pub(crate) fn sdk_config(address: SocketAddr) -> SdkConfig {
    let variables = [
        ("AWS_REGION", "eu-west-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    sdk_config_of(variables.into()).expect("a configuration")
}

/// A service of AWS at this address.
pub(crate) async fn aws(address: SocketAddr, names: [&'static str; 3]) -> AwsService {
    let trust = Trust::of_amazon();
    AwsService::of(&sdk_config(address), &trust, names).await.expect("a service")
}

/// A parameter of the Parameter Store at this address.
pub(crate) async fn secret_at(address: SocketAddr, clock: Clock) -> Secret {
    Secret::of(aws(address, ["ssm", "ssm", "SSM"]).await, "/shop/secret".to_owned(), clock)
}

/// A secret with this value.
pub(crate) async fn secret(value: &str) -> Secret {
    let body = serde_json::json!({ "Parameter": { "Value": value } }).to_string();
    let store = Http::start(None, vec![Does::Answer(200, String::new(), body)]).await;
    secret_at(store.address, Clock::system()).await
}

/// The server's side of a connection with TLS.
fn acceptor(certificate: &str) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(file(certificate)).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file("server.key")).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the key of the certificate");
    TlsAcceptor::from(Arc::new(config))
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Waits for ever, on a clock that goes on as soon as all others wait too. So no test takes the time of a time-out.
async fn silence() {
    tokio::time::pause();
    std::future::pending().await
}

/// How the server of HTTP handles a request.
#[derive(Clone)]
pub(crate) enum Does {
    /// It answers: status, headers with their ends of line, body.
    Answer(u16, String, String),
    /// It says nothing.
    Silence,
    /// It begins an answer with this text, and goes on with a byte a second.
    Drip(&'static str),
    /// It closes the connection.
    Close,
}

/// A server of HTTP.
pub(crate) struct Http {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Http {
    /// A server with this certificate, or without TLS. It does one after another of these, and the last for ever.
    pub(crate) async fn start(certificate: Option<&str>, does: Vec<Does>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let (seen, acceptor) = (requests.clone(), certificate.map(acceptor));
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.expect("a connection");
                let stream: Box<dyn Stream> = match &acceptor {
                    None => Box::new(socket),
                    Some(acceptor) => match acceptor.accept(socket).await {
                        Ok(stream) => Box::new(stream),
                        Err(_) => continue, // a client that does not trust the server
                    },
                };
                let mut stream = BufReader::new(stream);
                let request = request(&mut stream).await;
                let n = {
                    let mut seen = seen.lock().expect("no panic");
                    seen.push(request);
                    seen.len()
                };
                answer(stream, does[n.min(does.len()) - 1].clone()).await;
            }
        });
        Self { address, requests }
    }

    /// The requests that have come.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }
}

async fn request(stream: &mut BufReader<Box<dyn Stream>>) -> String {
    let (mut text, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.expect("a line");
        text.push_str(&line);
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a length");
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a body");
    text + &String::from_utf8(body).expect("text")
}

async fn answer(mut stream: BufReader<Box<dyn Stream>>, does: Does) {
    match does {
        Does::Close => {}
        Does::Silence => silence().await,
        Does::Drip(head) => {
            stream.write_all(head.as_bytes()).await.expect("the client reads");
            tokio::time::pause();
            while stream.write_all(b"H").await.is_ok() && stream.flush().await.is_ok() {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
        Does::Answer(status, headers, body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} .\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n"
            );
            // A client that reads no further closes the connection.
            let _ = stream.write_all((head + &body).as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    }
}

/// A mail that arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) text: String,
    pub(crate) user: String,
    pub(crate) by_tls: bool,
}

/// How a server of SMTP differs from one that takes each mail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Smtp {
    /// It has TLS from the first byte, and wants credentials.
    Tls(&'static str),
    /// It offers STARTTLS, and wants credentials then.
    StartTls,
    /// It has no TLS.
    Plain,
    /// It says nothing.
    Silent,
    /// It takes the text of a mail, and says nothing then.
    SilentAtTheEnd,
    /// It takes a mail, and does not say goodbye.
    SilentAtTheGoodbye,
    /// It breaks off when the text has come.
    Torn,
}

/// The user and the password that servers of SMTP want.
const USER: (&str, &str) = ("shop", "p@ss: word");

/// A mail while it comes.
struct Coming {
    mail: Arrived,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Handler for Coming {
    fn mail(&mut self, _: IpAddr, _: &str, from: &str) -> Response {
        self.mail.from = from.to_owned();
        response::OK
    }

    fn rcpt(&mut self, to: &str) -> Response {
        self.mail.to = to.to_owned();
        let text = |text: &str| format!("{text} <{to}>");
        match to.split('@').next() {
            Some("full") => Response::custom(452, text("4.2.2 no room for")),
            Some("nobody") => Response::custom(550, text("5.1.1 no such person:")),
            _ => response::OK,
        }
    }

    fn data(&mut self, text: &[u8]) -> std::io::Result<()> {
        self.mail.text.push_str(&String::from_utf8_lossy(text));
        Ok(())
    }

    fn data_end(&mut self) -> Response {
        self.arrived.lock().expect("no panic").push(self.mail.clone());
        response::OK
    }

    fn auth_plain(&mut self, _: &str, user: &str, password: &str) -> Response {
        self.mail.user = user.to_owned();
        if (user, password) == USER { response::AUTH_OK } else { response::INVALID_CREDENTIALS }
    }
}

impl Smtp {
    /// Starts a server. Its address, and the mails that it takes.
    pub(crate) async fn start(self) -> (SocketAddr, Arc<Mutex<Vec<Arrived>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let arrived = Arc::<Mutex<Vec<Arrived>>>::default();
        let mails = arrived.clone();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.expect("a connection");
                match self {
                    Self::Silent => silence().await,
                    Self::Tls(certificate) => match acceptor(certificate).accept(socket).await {
                        Ok(stream) => self.session(Box::new(stream), mails.clone()).await,
                        Err(_) => continue,
                    },
                    _ => self.session(Box::new(socket), mails.clone()).await,
                }
            }
        });
        (address, arrived)
    }

    async fn session(self, stream: Box<dyn Stream>, arrived: Arc<Mutex<Vec<Arrived>>>) {
        let mut builder = SessionBuilder::new("mail.example.com");
        if self == Self::StartTls {
            builder.enable_start_tls();
        }
        if matches!(self, Self::StartTls | Self::Tls(_)) {
            builder.enable_auth(AuthMechanism::Plain);
        }
        let by_tls = matches!(self, Self::Tls(_));
        let mail = Arrived { by_tls, ..Arrived::default() };
        let ip = Ipv4Addr::LOCALHOST.into();
        let mut session = builder.build(ip, Coming { mail, arrived: arrived.clone() });
        if by_tls {
            session.tls_active();
        }
        let mut stream = BufReader::new(stream);
        let mut said = session.greeting();
        loop {
            if said.action != Action::NoReply {
                stream.write_all(&said.buffer().expect("a text")).await.expect("the client reads");
                stream.flush().await.expect("the client reads");
            }
            match said.action {
                Action::Close => return,
                Action::UpgradeTls => {
                    let tls = acceptor("server.pem").accept(stream.into_inner()).await;
                    let Ok(tls) = tls else { return };
                    session.tls_active();
                    stream = BufReader::new(Box::new(tls));
                }
                Action::Reply | Action::NoReply => {}
            }
            let mut line = Vec::new();
            match stream.read_until(b'\n', &mut line).await {
                Ok(1..) => {}
                _ => return,
            }
            match (self, &line[..]) {
                (Self::SilentAtTheEnd, b".\r\n") => silence().await,
                (Self::SilentAtTheGoodbye, b"QUIT\r\n") => silence().await,
                (Self::Torn, b".\r\n") => return,
                _ => {}
            }
            said = session.process(&line);
        }
    }
}
