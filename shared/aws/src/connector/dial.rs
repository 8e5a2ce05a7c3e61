//! Opens connections: to a server, or through a proxy, with TLS if the URL says so.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::vec;

use aws_smithy_runtime_api::client::dns::{ResolveDns as _, SharedDnsResolver};
use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector as Tcp};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::{Service, service_fn};

use crate::Trust;

type Failed = Box<dyn Error + Send + Sync>;
type Opening<T> = Pin<Box<dyn Future<Output = Result<T, Failed>> + Send>>;

/// A step took longer than its limit.
#[derive(Debug, thiserror::Error)]
pub(super) enum Late {
    #[error("no connection in {0:?}")]
    Connection(Duration),
    #[error("no answer in {0:?}")]
    Answer(Duration),
}

#[derive(Clone)]
pub(super) struct Dial {
    tcp: Tcp<Names>,
    trust: Trust,
    proxies: Arc<Matcher>,
    limit: Option<Duration>,
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dial")
    }
}

impl Service<Uri> for Dial {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = Failed;
    type Future = Opening<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let stream = match this.limit {
                None => this.reach(to).await?,
                Some(limit) => match timeout(limit, this.reach(to)).await {
                    Ok(stream) => stream?,
                    Err(_) => return Err(Late::Connection(limit).into()),
                },
            };
            Ok(TokioIo::new(stream))
        })
    }
}

impl Dial {
    pub(super) fn new(
        trust: Trust,
        proxies: Arc<Matcher>,
        limit: Option<Duration>,
        resolver: Option<SharedDnsResolver>,
    ) -> Self {
        let mut tcp = Tcp::new_with_resolver(Names(resolver));
        tcp.enforce_http(false); // it only opens the connection, for `https` too
        tcp.set_nodelay(true);
        Self { tcp, trust, proxies, limit }
    }

    /// A connection to a server, through a proxy if there is one for it.
    async fn reach(self, to: Uri) -> Result<Box<dyn Stream>, Failed> {
        let Some(proxy) = self.proxies.intercept(&to) else { return self.open(to).await };
        let at = proxy.uri().clone();
        if to.scheme() != Some(&Scheme::HTTPS) {
            return Ok(Box::new(Forwarded(self.open(at).await?)));
        }
        let this = self.clone();
        let open = move |at| {
            let this = this.clone();
            async move { this.open(at).await.map(TokioIo::new) }
        };
        let mut tunnel = Tunnel::new(at, service_fn(open));
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let stream = tunnel.call(to.clone()).await?.into_inner();
        self.encrypted(stream, &to).await
    }

    /// A direct connection to a server or a proxy.
    async fn open(mut self, to: Uri) -> Result<Box<dyn Stream>, Failed> {
        let has_tls = match to.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            other => {
                let other = other.unwrap_or_default();
                return Err(format!("{other}://{} is no URL of HTTP", host(&to)).into());
            }
        };
        let stream = Box::new(self.tcp.call(to.clone()).await?.into_inner());
        if has_tls { self.encrypted(stream, &to).await } else { Ok(stream) }
    }

    async fn encrypted(
        &self,
        stream: Box<dyn Stream>,
        to: &Uri,
    ) -> Result<Box<dyn Stream>, Failed> {
        let name = ServerName::try_from(host(to).to_owned())?;
        let stream = TlsConnector::from(self.trust.tls()).connect(name, stream).await?;
        Ok(Box::new(stream))
    }
}

/// A host without the brackets of an IPv6 address.
fn host(of: &Uri) -> &str {
    of.host().unwrap_or_default().trim_matches(['[', ']'])
}

/// Looks up names, by a given resolver or by the machine's.
#[derive(Clone)]
struct Names(Option<SharedDnsResolver>);

impl Service<Name> for Names {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Failed;
    type Future = Opening<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = match resolver {
                None => lookup_host((name.as_str(), 0)).await?.collect(),
                Some(resolver) => {
                    let found = resolver.resolve_dns(name.as_str()).await?;
                    found.into_iter().map(|address| (address, 0).into()).collect()
                }
            };
            Ok(found.into_iter())
        })
    }
}

/// A connection, with or without TLS. It is boxed, so the code above it is compiled once.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Whether it ends at a proxy that forwards single requests. Such requests name the whole URL.
    fn is_forwarded(&self) -> bool {
        false
    }
}

impl Stream for TcpStream {}

impl Stream for TlsStream<Box<dyn Stream>> {}

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_forwarded())
    }
}

/// A connection to a proxy that forwards single requests.
struct Forwarded(Box<dyn Stream>);

impl Stream for Forwarded {
    fn is_forwarded(&self) -> bool {
        true
    }
}

impl AsyncRead for Forwarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        page: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, page)
    }
}

impl AsyncWrite for Forwarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
