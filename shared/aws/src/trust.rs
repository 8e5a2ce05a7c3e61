//! The servers that the SDK's clients trust.
//!
//! A function trusts only Amazon's roots, because reading all roots of the machine took more than half of a start. They
//! are valid until 2037. Three of these five have signed the roots of the European Sovereign Cloud.

use std::borrow::Cow;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The variable with the path of a PEM file. Other SDKs of AWS read it too.
pub const CA_BUNDLE: &str = "AWS_CA_BUNDLE";

/// The five roots of Amazon Trust Services, to which the certificates of AWS lead: Amazon Root CA 1 to 4, and Starfield
/// Services Root Certificate Authority - G2. <https://www.amazontrust.com/repository/> lists them.
const AMAZON: &[u8] = include_bytes!("trust/amazon.pem");

/// The root certificates that a client trusts. Clones share the TLS sessions that can be resumed.
#[derive(Clone, Debug)]
pub struct Trust {
    roots: Roots,
    tls: Arc<OnceLock<Arc<ClientConfig>>>,
}

#[derive(Clone, Debug)]
enum Roots {
    Pem(Cow<'static, [u8]>),
    /// Reads them when they are needed. A program that never uses the machine's roots has no code for them.
    Read(fn() -> RootCertStore),
}

/// The file of `AWS_CA_BUNDLE` can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the certificates of {CA_BUNDLE}, {}", path.display())]
pub struct BundleError {
    path: PathBuf,
    source: Box<dyn Error + Send + Sync>,
}

impl Trust {
    /// Amazon's roots. They are in the program, so no file is read.
    #[must_use]
    pub fn of_amazon() -> Self {
        Self::of(Roots::Pem(AMAZON.into()))
    }

    /// The roots that the machine trusts. All of them are read.
    #[must_use]
    pub fn of_machine() -> Self {
        Self::of(Roots::Read(of_machine))
    }

    /// Only the certificates of the bundle, if there is one.
    ///
    /// # Errors
    /// The file can't be read, or has no certificate, or a wrong one.
    pub fn or_bundle(self, path: Option<impl AsRef<Path>>) -> Result<Self, BundleError> {
        let Some(path) = path else { return Ok(self) };
        let path = path.as_ref();
        let wrong = |source| BundleError { path: path.to_owned(), source };
        let pem = std::fs::read(path).map_err(|error| wrong(error.into()))?;
        roots_of(&pem).map_err(wrong)?;
        Ok(Self::of(Roots::Pem(pem.into())))
    }

    /// The roots as PEM, for clients of other protocols; `None` for the machine's roots.
    #[must_use]
    pub fn pem(&self) -> Option<&[u8]> {
        match &self.roots {
            Roots::Pem(pem) => Some(pem),
            Roots::Read(_) => None,
        }
    }

    /// The settings of TLS. The first connection makes them.
    pub(crate) fn tls(&self) -> Arc<ClientConfig> {
        let make = || {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let settings = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .expect("ring has what each version needs");
            let mut settings = settings.with_root_certificates(self.roots()).with_no_client_auth();
            settings.alpn_protocols = vec![b"http/1.1".to_vec()];
            Arc::new(settings)
        };
        Arc::clone(self.tls.get_or_init(make))
    }

    fn of(roots: Roots) -> Self {
        Self { roots, tls: Arc::default() }
    }

    fn roots(&self) -> RootCertStore {
        match &self.roots {
            Roots::Pem(pem) => roots_of(pem).expect("they were read once"),
            Roots::Read(read) => read(),
        }
    }
}

fn of_machine() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors;
        tracing::warn!(?why, "this machine has no root certificates, so no server is trusted");
    }
    roots
}

fn roots_of(pem: &[u8]) -> Result<RootCertStore, Box<dyn Error + Send + Sync>> {
    let mut roots = RootCertStore::empty();
    for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
        let unreadable =
            |error: &dyn Error| format!("certificate {} can't be read: {error}", index + 1);
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() { Err("the file has no certificate in PEM".into()) } else { Ok(roots) }
}

#[cfg(test)]
pub(crate) mod tests;
