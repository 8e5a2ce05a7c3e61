//! Which servers the SDK's clients trust, and the HTTP client that asks a server for its certificate.

use std::borrow::Cow;
use std::error::Error;
use std::path::{Path, PathBuf};

use aws_sdk_dynamodb::config::SharedAsyncSleep;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::dns::SharedDnsResolver;
use aws_smithy_runtime_api::client::http::{HttpConnectorSettings, SharedHttpClient};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The variable with the path of a PEM file. Other SDKs of AWS read it too.
pub const CA_BUNDLE: &str = "AWS_CA_BUNDLE";

/// The five roots of Amazon Trust Services, to which the certificates of AWS lead: Amazon Root CA 1 to 4, and
/// Starfield Services Root Certificate Authority - G2. <https://www.amazontrust.com/repository/> lists them.
const AMAZON: &[u8] = include_bytes!("trust/amazon.pem");

/// The root certificates that a client trusts, as PEM; `None` are those of the machine.
#[derive(Clone, Debug)]
pub struct Trust(Option<Cow<'static, [u8]>>);

/// The file of `AWS_CA_BUNDLE` can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the certificates of {CA_BUNDLE}, {}", path.display())]
pub struct BundleError {
    path: PathBuf,
    source: Box<dyn Error + Send + Sync>,
}

impl Trust {
    /// Amazon's own roots. They are in the program, so nothing is read.
    #[must_use]
    pub fn of_amazon() -> Self {
        Self(Some(AMAZON.into()))
    }

    /// The roots that the machine trusts. All of them are read.
    #[must_use]
    pub fn of_machine() -> Self {
        Self(None)
    }

    /// The certificates of the bundle alone, if there is one.
    ///
    /// # Errors
    /// The file can't be read, or has no certificate, or a wrong one.
    pub fn or_bundle(self, path: Option<impl AsRef<Path>>) -> Result<Self, BundleError> {
        let Some(path) = path else { return Ok(self) };
        let path = path.as_ref();
        let wrong = |source| BundleError { path: path.to_owned(), source };
        let pem = std::fs::read(path).map_err(|error| wrong(error.into()))?;
        check(&pem).map_err(wrong)?;
        Ok(Self(Some(pem.into())))
    }

    /// The client for all services. As the SDK's own client it takes the proxy that the environment names.
    #[must_use]
    pub fn http_client(self) -> SharedHttpClient {
        Builder::new().build_with_connector_fn(move |settings, components| {
            let sleep = components.and_then(RuntimeComponents::sleep_impl);
            self.connect(ProxyConfig::from_env(), settings.cloned(), sleep, None)
        })
    }

    /// Sends requests as they are, without a proxy.
    #[must_use]
    pub fn connector(&self) -> Connector {
        self.connect(ProxyConfig::disabled(), None, None, None)
    }

    /// The same, with a resolver of names of its own.
    #[must_use]
    pub fn connector_by(&self, resolver: SharedDnsResolver) -> Connector {
        self.connect(ProxyConfig::disabled(), None, None, Some(resolver))
    }

    /// The same through the proxy that the environment names.
    #[must_use]
    pub fn proxied(&self) -> Connector {
        self.connect(ProxyConfig::from_env(), None, None, None)
    }

    /// The roots as PEM, for clients of other protocols; `None` if they are those that the machine trusts.
    #[must_use]
    pub fn pem(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }

    fn connect(
        &self,
        proxy: ProxyConfig,
        settings: Option<HttpConnectorSettings>,
        sleep: Option<SharedAsyncSleep>,
        resolver: Option<SharedDnsResolver>,
    ) -> Connector {
        let store = match &self.0 {
            Some(pem) => TrustStore::empty().with_pem_certificate(&**pem),
            None => TrustStore::default(),
        };
        let context = TlsContext::builder().with_trust_store(store).build();
        let mut builder = Connector::builder()
            .proxy_config(proxy)
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .tls_context(context.expect("a trust store is a whole context"));
        builder.set_connector_settings(settings);
        builder.set_sleep_impl(sleep);
        match resolver {
            Some(resolver) => builder.build_with_resolver(resolver),
            None => builder.build(),
        }
    }
}

/// Checks the text of a bundle. The HTTP client would panic at a wrong one.
fn check(pem: &[u8]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut roots = RootCertStore::empty();
    for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
        let unreadable =
            |error: &dyn Error| format!("certificate {} can't be read: {error}", index + 1);
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() { Err("the file has no certificate in PEM".into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
