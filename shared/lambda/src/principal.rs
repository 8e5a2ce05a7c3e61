//! The sender of an HTTP request, as the API's authorizer found it.

use std::collections::HashMap;
use std::str::FromStr;

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use ringfence_core::{Principal, PrincipalKind, escape};

use crate::problem::Problem;

/// The longest alias of an issuer, in bytes. It is in each event that a token's subject causes.
const ALIAS_BYTES_MAX: usize = 32;

/// The issuers of tokens that have aliases. As text: `main=https://id.example.com/,partner=https://login.example.org`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issuers(HashMap<String, String>);

impl Issuers {
    /// The name of an issuer in principals: its alias, or its escaped URL, which has no colon.
    fn name(&self, issuer: &str) -> String {
        self.0.get(issuer).cloned().unwrap_or_else(|| escape(issuer))
    }
}

impl FromStr for Issuers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut aliases = HashMap::new();
        for pair in text.split(',').map(str::trim).filter(|_| !text.is_empty()) {
            let wrong = |why: &str| format!("{pair:?}: {why}");
            let (alias, issuer) = pair.split_once('=').ok_or_else(|| {
                wrong("write <alias>=<issuer>, such as main=https://id.example.com/")
            })?;
            let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
            if !(1..=ALIAS_BYTES_MAX).contains(&alias.len()) || !alias.bytes().all(is_plain) {
                return Err(wrong("an alias has 1 to 32 characters of a to z, 0 to 9 and -"));
            }
            if !is_url(issuer) {
                return Err(wrong("the issuer is a URL, as the claim iss has it"));
            }
            if aliases.values().any(|known| known == alias) {
                return Err(wrong("another issuer has this alias"));
            }
            if aliases.insert(issuer.to_owned(), alias.to_owned()).is_some() {
                return Err(wrong("the issuer has another alias"));
            }
        }
        Ok(Self(aliases))
    }
}

fn is_url(issuer: &str) -> bool {
    issuer.starts_with("https://") || issuer.starts_with("http://")
}

/// The sender of a request to the HTTP API; `None` if the API has no authorizer.
///
/// # Errors
/// The API let the request in, but the token or the signature names nobody, or the authorizer is of another kind, so no
/// member of its result is known to be the caller. Without an authorizer a caller may do and see everything, so an
/// unknown caller must not count as such.
pub fn principal(
    request: &ApiGatewayV2httpRequest,
    issuers: &Issuers,
) -> Result<Option<Principal>, Problem> {
    let context = &request.request_context;
    let Some(authorizer) = &context.authorizer else { return Ok(None) };
    let (found, lacks) = match (&authorizer.jwt, &authorizer.iam) {
        (Some(jwt), _) => {
            let lacks = "the token has no issuer that is a URL, or neither sub nor client_id";
            (of_claims(&jwt.claims, issuers), lacks)
        }
        (None, Some(iam)) => {
            let own_account = context.account_id.as_deref();
            let found = iam.user_arn.as_deref().and_then(|arn| of_arn(arn, own_account));
            (found, "the signature has no ARN")
        }
        (None, None) => (None, "the API has an authorizer of another kind than JWT and IAM"),
    };
    let nobody = || Problem::malformed("Authorization", format_args!("names nobody: {lacks}"));
    found.ok_or_else(nobody).map(Some)
}

/// The caller of a token: only its issuer, subject and scopes count.
fn of_claims(claims: &HashMap<String, String>, issuers: &Issuers) -> Option<Principal> {
    let claim = |name| claims.get(name).filter(|text| !text.is_empty());
    // An issuer that is not a URL could look like the alias of another one.
    let issuer = issuers.name(claim("iss").filter(|issuer| is_url(issuer))?);
    // The token of a program may have no subject. Then the program's id must not look like a subject. An empty subject
    // is not a program. In a program's token of Cognito, the subject is the program.
    let is_of_cognito = claim("token_use").is_some_and(|of| of == "access")
        && claim("sub") == claim("client_id")
        && !claims.contains_key("username");
    let (kind, id) = match claims.contains_key("sub") && !is_of_cognito {
        true => (PrincipalKind::Jwt, claim("sub")?),
        false => (PrincipalKind::Client, claim("client_id")?),
    };
    // API Gateway takes the scopes of both claims, and writes a list as `[a b]`.
    let words = |text| str::trim_start_matches(text, '[').trim_end_matches(']').split_whitespace();
    let scopes = ["scope", "scp"].into_iter().filter_map(claim).flat_map(|text| words(text));
    Some(Principal::new(kind, Some(&issuer), id.clone()).with_scopes(scopes))
}

/// The caller of an ARN. The account counts if it is not the API's. The path does not count, because names of users and
/// roles are unique in their account, nor does the session, because a caller chooses its name.
fn of_arn(arn: &str, own_account: Option<&str>) -> Option<Principal> {
    // arn:<partition>:<service>:<Region>:<account>:<resource>
    let mut parts = arn.splitn(6, ':').skip(4);
    let (account, resource) = (parts.next()?, parts.next()?);
    let id = match resource.split_once('/') {
        Some(("assumed-role", session)) => {
            format!("role/{}", session.split_once('/').map_or(session, |(role, _)| role))
        }
        Some((kind @ ("user" | "role"), path)) => {
            format!("{kind}/{}", path.rsplit_once('/').map_or(path, |(_, name)| name))
        }
        // The root of an account, or a federated user.
        _ => resource.to_owned(),
    };
    let issuer = Some(account).filter(|account| own_account != Some(*account));
    Some(Principal::new(PrincipalKind::Iam, issuer, id))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_token_without_a_subject_is_of_its_program_and_an_empty_subject_is_nobody() {
        let of = |subject: Value| {
            let claims =
                json!({ "iss": "https://id.example.com/", "sub": subject, "client_id": "till" });
            let authorizer = json!({ "jwt": { "claims": claims } });
            let context = json!({ "http": { "method": "GET" }, "authorizer": authorizer });
            let request = crate::request(json!({ "requestContext": context })).unwrap();
            principal(&request, &Issuers::default()).ok().flatten()
        };
        assert_eq!(of("ada".into()).unwrap().kind, PrincipalKind::Jwt);
        assert_eq!(of(Value::Null).unwrap().kind, PrincipalKind::Client);
        assert_eq!(of("".into()), None);
    }

    #[test]
    fn issuers_have_one_alias_each_and_a_wrong_one_is_named() {
        let issuers = |text: &str| text.parse::<Issuers>();
        assert_eq!(issuers(""), Ok(Issuers::default()));
        let two =
            issuers("main=https://id.example.com/?a=b, partner-2=http://127.0.0.1:9000").unwrap();
        assert_eq!(two.name("https://id.example.com/?a=b"), "main");
        assert_eq!(two.name("http://127.0.0.1:9000"), "partner-2");
        assert_eq!(two.name("https://id.example.com"), "https%3A%2F%2Fid.example.com");
        let (long, longest) = ("a".repeat(33), "a".repeat(32));
        assert!(issuers(&format!("{longest}=https://a")).is_ok());
        for (text, why) in [
            ("main", "write <alias>=<issuer>"),
            ("main=https://a,", "write <alias>=<issuer>"),
            ("=https://a", "an alias has 1 to 32 characters"),
            (&format!("{long}=https://a"), "an alias has 1 to 32 characters"),
            ("Main=https://a", "an alias has 1 to 32 characters"),
            ("a:b=https://a", "an alias has 1 to 32 characters"),
            ("main=id.example.com", "the issuer is a URL"),
            ("main=https://a,main=https://b", "another issuer has this alias"),
            ("main=https://a,other=https://a", "the issuer has another alias"),
        ] {
            let error = issuers(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
