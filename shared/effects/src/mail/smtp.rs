//! Mail over SMTP. The protocol is lettre's. Each mail has its own connection, because a function sleeps between two
//! mails, and servers close idle connections.
//!
//! lettre's client for tokio would need more features of other dependencies. So a mail is sent on a thread that may
//! block. When the time is over, the function stops waiting for the thread, which ends with its connection.

use std::error::Error;
use std::time::Duration;

use http::Uri;
use lettre::Message;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{
    Certificate, CertificateStore, SmtpConnection, TlsParameters,
};
use lettre::transport::smtp::extension::ClientId;
use percent_encoding::percent_decode_str;
use ringfence_aws::Trust;
use ringfence_core::chain;
use ringfence_reactors::Failed;
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

use crate::cause::without_addresses;
use crate::secret::Secret;

/// The time to read the URL, to connect, for TLS, and to show the credentials. Nothing is sent before that.
const OPEN_TIME: Duration = Duration::from_secs(6);
/// The time to send the mail and to get the answer.
const SEND_TIME: Duration = Duration::from_secs(6);

pub(super) struct Smtp {
    url: Secret,
    trust: Trust,
    /// The server, and the URL that names it.
    server: Mutex<Option<(String, Server)>>,
}

/// The server that the URL names.
#[derive(Clone)]
struct Server {
    host: String,
    port: u16,
    security: Security,
    credentials: Option<Credentials>,
}

#[derive(Clone)]
enum Security {
    /// TLS from the first byte.
    Tls(TlsParameters),
    /// The connection changes to TLS before anything else is sent.
    StartTls(TlsParameters),
    /// For a server of the same machine.
    Plain,
}

/// The URL of an SMTP server can't be used. The error does not repeat it, because it has a password.
#[derive(Debug, thiserror::Error)]
#[error(
    "the URL of an SMTP server is smtps://user:password@host with TLS, smtp://user:password@host?tls=required with STARTTLS, \
     or smtp://host without both"
)]
struct UrlError;

/// Whether the server's answer has a status about the receiver's address (RFC 3463, 3.2).
fn is_of_address(said: &str) -> bool {
    let statuses = ["5.1.0", "5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10"];
    said.split_whitespace().any(|word| statuses.contains(&word))
}

impl Smtp {
    pub(super) fn new(url: Secret, trust: Trust) -> Self {
        Self { url, trust, server: Mutex::default() }
    }

    pub(super) async fn send(&self, message: &Message) -> Result<(), Failed> {
        let from = message.envelope().from().map(lettre::Address::domain);
        let name = ClientId::Domain(from.unwrap_or_default().to_owned());
        let open = async {
            let server = self.server().await?;
            blocking(move || server.open(&name)).await
        };
        let mut connection = match timeout(OPEN_TIME, open).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(Failed::ForNow(without_addresses(&chain(&*error)))),
            Err(_) => {
                return Err(Failed::ForNow(format!("the SMTP server is silent for {OPEN_TIME:?}")));
            }
        };
        let (envelope, text) = (message.envelope().clone(), message.formatted());
        let sent = blocking(move || connection.send(&envelope, &text).map(|_| connection));
        let Ok(sent) = timeout(SEND_TIME, sent).await else {
            return Err(Failed::Unknown(format!(
                "the SMTP server has not answered in {SEND_TIME:?}"
            )));
        };
        let error = match sent {
            Ok(mut connection) => {
                // The server has taken the mail. Nobody waits for its goodbye.
                std::thread::spawn(move || connection.quit());
                return Ok(());
            }
            Err(error) => error,
        };
        let cause = without_addresses(&chain(&error));
        Err(match error {
            error if error.is_transient() => Failed::ForNow(cause),
            // Nobody has the address.
            error if error.is_permanent() && is_of_address(&cause) => Failed::Undeliverable(cause),
            error if error.is_permanent() || error.is_client() => Failed::ForGood(cause),
            _ => Failed::Unknown(cause),
        })
    }

    async fn server(&self) -> Result<Server, Box<dyn Error + Send + Sync>> {
        let url = self.url.read().await?;
        let mut known = self.server.lock().await;
        if let Some((of, server)) = &*known
            && *of == url
        {
            return Ok(server.clone());
        }
        let server = Server::of(&url, &self.trust)?;
        *known = Some((url, server.clone()));
        Ok(server)
    }
}

impl Server {
    fn of(url: &str, trust: &Trust) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let url: Uri = url.parse().map_err(|_| UrlError)?;
        let host = url.host().ok_or(UrlError)?.to_owned();
        let authority = url.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let credentials = match authority.rsplit_once('@').map(|(user, _)| user.split_once(':')) {
            None => None,
            Some(None) => return Err(UrlError.into()),
            Some(Some((user, password))) => {
                Some(Credentials::new(decoded(user), decoded(password)))
            }
        };
        let (security, port) = match (url.scheme_str(), url.query()) {
            (Some("smtps"), None) => (Security::Tls(tls(&host, trust)?), 465),
            (Some("smtp"), Some("tls=required")) => (Security::StartTls(tls(&host, trust)?), 587),
            (Some("smtp"), None) if credentials.is_none() => (Security::Plain, 25),
            _ => return Err(UrlError.into()),
        };
        Ok(Self { host, port: url.port_u16().unwrap_or(port), security, credentials })
    }

    /// A connection that can send a mail.
    fn open(&self, name: &ClientId) -> Result<SmtpConnection, Box<dyn Error + Send + Sync>> {
        let (at_once, later) = match &self.security {
            Security::Tls(tls) => (Some(tls), None),
            Security::StartTls(tls) => (None, Some(tls)),
            Security::Plain => (None, None),
        };
        let address = (self.host.as_str(), self.port);
        let mut connection =
            SmtpConnection::connect(address, Some(OPEN_TIME), name, at_once, None)?;
        if let Some(tls) = later {
            connection.starttls(tls, name)?;
        }
        if let Some(credentials) = &self.credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials)?;
        }
        Ok(connection)
    }
}

/// Does this on another thread.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = oneshot::channel();
    std::thread::spawn(move || {
        // An error means that nobody waits any more.
        let _ = done.send(work());
    });
    result.await.expect("the work does not panic")
}

fn tls(host: &str, trust: &Trust) -> Result<TlsParameters, Box<dyn Error + Send + Sync>> {
    let builder = TlsParameters::builder(host.to_owned());
    let builder = match trust.pem() {
        None => builder,
        Some(pem) => builder
            .certificate_store(CertificateStore::None)
            .add_root_certificate(Certificate::from_pem(pem)?),
    };
    Ok(builder.build_rustls()?)
}
