//! Who gave a command.

use std::fmt;

/// Who gave a command. A decision may compare it with a field of its command, and events keep its text in their
/// metadata, under [`Metadata::PRINCIPAL`](crate::Metadata::PRINCIPAL):
///
/// | text | who |
/// |---|---|
/// | `jwt:<issuer>:<subject>` | the subject of a token |
/// | `client:<issuer>:<client id>` | the program that a token was issued to, if the token has no subject |
/// | `iam:user/<name>`, `iam:role/<name>` | a user, or a role in any of its sessions, of the API's account |
/// | `iam:<account>:user/<name>`, … | the same of another account |
/// | `direct:<name>` | a direct invoker, by the name that it gives itself |
/// | any other text | the text in an event of an older version, or in an imported one |
///
/// The subject of a token is unique only within its issuer. So a rule that compares the id must also compare the kind
/// and the issuer, or the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The source that vouches for the principal.
    pub kind: PrincipalKind,
    /// The alias of a token's issuer, or the account of an IAM principal from another account than the API's.
    pub issuer: Option<String>,
    /// The subject of the token, the client's id, the name in IAM, or the name that a direct invoker gives itself.
    pub id: String,
    /// The scopes of the token. Events do not keep them, so a reaction has none.
    pub scopes: Vec<String>,
}

/// The source that vouches for a principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalKind {
    /// A token with a subject.
    Jwt,
    /// A token without a subject. The client is known.
    Client,
    /// IAM.
    Iam,
    /// The direct invoker names itself. IAM has let it invoke the function, so let only programs that you trust do
    /// so.
    Direct,
    /// No source of this stack: the text is from an event of an older version, or from an imported one.
    Other,
}

impl PrincipalKind {
    /// Prefix of the kind's texts.
    fn prefix(self) -> Option<&'static str> {
        match self {
            Self::Jwt => Some("jwt"),
            Self::Client => Some("client"),
            Self::Iam => Some("iam"),
            Self::Direct => Some("direct"),
            Self::Other => None,
        }
    }
}

impl Principal {
    /// A principal without scopes.
    pub fn new(kind: PrincipalKind, issuer: Option<&str>, id: impl Into<String>) -> Self {
        Self { kind, issuer: issuer.map(str::to_owned), id: id.into(), scopes: Vec::new() }
    }

    /// The principal with the scopes of its token.
    #[must_use]
    pub fn with_scopes<T: Into<String>>(self, scopes: impl IntoIterator<Item = T>) -> Self {
        Self { scopes: scopes.into_iter().map(Into::into).collect(), ..self }
    }

    /// Whether it is the person with this subject at the issuer with the alias `main`.
    #[must_use]
    pub fn is_person(&self, subject: &impl fmt::Display) -> bool {
        let is_of_main = self.kind == PrincipalKind::Jwt && self.issuer.as_deref() == Some("main");
        is_of_main && self.id == subject.to_string()
    }

    /// Whether the principal has one of these scopes. Without scopes, everybody is allowed. Only tokens have scopes;
    /// for other principals IAM has decided before.
    #[must_use]
    pub fn may_use(&self, scopes: &[&str]) -> bool {
        let is_of_token = matches!(self.kind, PrincipalKind::Jwt | PrincipalKind::Client);
        let has_one = || scopes.iter().any(|scope| self.scopes.iter().any(|own| own == scope));
        !is_of_token || scopes.is_empty() || has_one()
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [self.kind.prefix(), self.issuer.as_deref()].into_iter().flatten() {
            write!(f, "{part}:")?;
        }
        f.write_str(&self.id)
    }
}

/// Parses the text of a principal.
impl From<&str> for Principal {
    fn from(text: &str) -> Self {
        let (prefix, rest) = text.split_once(':').unwrap_or_default();
        let of_issuer = rest.split_once(':').filter(|(issuer, _)| !issuer.is_empty());
        let is_account =
            |issuer: &str| issuer.len() == 12 && issuer.bytes().all(|b| b.is_ascii_digit());
        let (kind, issuer, id) = match (prefix, of_issuer) {
            ("jwt", Some((issuer, id))) => (PrincipalKind::Jwt, Some(issuer), id),
            ("client", Some((issuer, id))) => (PrincipalKind::Client, Some(issuer), id),
            ("iam", Some((issuer, id))) if is_account(issuer) => {
                (PrincipalKind::Iam, Some(issuer), id)
            }
            ("iam", _) => (PrincipalKind::Iam, None, rest),
            ("direct", _) => (PrincipalKind::Direct, None, rest),
            _ => (PrincipalKind::Other, None, text),
        };
        match id.is_empty() {
            true => Self::new(PrincipalKind::Other, None, text),
            false => Self::new(kind, issuer, id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_one_principal_and_a_principal_has_one_text() {
        use PrincipalKind::{Client, Direct, Iam, Jwt, Other};
        for (text, kind, issuer, id) in [
            ("jwt:main:ada", Jwt, Some("main"), "ada"),
            ("jwt:main:auth0|ada:1", Jwt, Some("main"), "auth0|ada:1"),
            ("jwt:https%3A//id.example:ada", Jwt, Some("https%3A//id.example"), "ada"),
            ("client:main:batch", Client, Some("main"), "batch"),
            ("iam:role/shop", Iam, None, "role/shop"),
            ("iam:111122223333:role/shop", Iam, Some("111122223333"), "role/shop"),
            ("iam:federated-user/a:b", Iam, None, "federated-user/a:b"),
            ("direct:jwt:main:ada", Direct, None, "jwt:main:ada"),
            ("ada", Other, None, "ada"),
            ("jwt:ada", Other, None, "jwt:ada"),
            ("jwt::ada", Other, None, "jwt::ada"),
            ("jwt:main:", Other, None, "jwt:main:"),
            ("direct:", Other, None, "direct:"),
            (
                "arn:aws:iam::111122223333:user/ada",
                Other,
                None,
                "arn:aws:iam::111122223333:user/ada",
            ),
        ] {
            let principal = Principal::from(text);
            assert_eq!(principal, Principal::new(kind, issuer, id), "{text}");
            assert_eq!(principal.to_string(), text);
        }
    }

    #[test]
    fn a_token_needs_one_of_the_scopes_and_nobody_else_needs_any() {
        let asked = ["orders/read", "orders/write"];
        let has_one = ["orders", "orders/write"];
        for text in ["jwt:main:ada", "client:main:batch"] {
            let principal = Principal::from(text);
            assert!(principal.may_use(&[]), "{text}");
            assert!(!principal.may_use(&asked), "{text}");
            assert!(!principal.clone().with_scopes(["orders", "orders/write2"]).may_use(&asked));
            assert!(principal.with_scopes(has_one).may_use(&asked), "{text}");
        }
        for text in ["iam:role/shop", "direct:batch", "ada"] {
            assert!(Principal::from(text).may_use(&asked), "{text}");
        }
    }
}
