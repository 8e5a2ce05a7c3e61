//! Decides which requests the ports of a stack accept: those of programs and of the stack's pages, and none of a
//! website.
//!
//! A page of a website can send requests to 127.0.0.1 from the same machine, and a name of that site can even lead
//! there. The browser puts the name into `Host`, and the page's origin into `Origin`. Programs such as curl and the AWS
//! SDKs send no `Origin`. They name the stack by an address, also from containers, or by `localhost`.

use std::net::IpAddr;

use axum::{
    Router,
    extract::Request,
    http::{
        HeaderMap, StatusCode, Uri,
        header::{HOST, ORIGIN},
        uri::Authority,
    },
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
};
use serde_json::json;

const LOCALHOST: &str = "localhost";
/// Containers of Docker Desktop reach this machine by this name. No website has it, because `internal` is reserved.
const OF_CONTAINERS: &str = "host.docker.internal";

/// These routes under the guard.
pub(crate) fn guarded(routes: Router) -> Router {
    routes.layer(from_fn(guard))
}

async fn guard(request: Request, next: Next) -> Response {
    match refusal(request.uri(), request.headers()) {
        None => next.run(request).await,
        Some((status, why)) => (status, axum::Json(json!({ "message": why }))).into_response(),
    }
}

/// Why a request is refused.
fn refusal(uri: &Uri, headers: &HeaderMap) -> Option<(StatusCode, String)> {
    let text =
        |name| headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    // HTTP/2 has the host in the URL. Every browser sends one of the two.
    let of_url = uri.authority().map(|host| host.as_str().into());
    let host = text(HOST).next().or(of_url)?;
    if !leads_only_here(&host) {
        let why = format!(
            "This stack has no name but localhost, and {host:?} may belong to a website. Use \
             localhost or the address."
        );
        return Some((StatusCode::MISDIRECTED_REQUEST, why));
    }
    let own = format!("http://{host}");
    let origin = text(ORIGIN).find(|origin| *origin != own)?;
    let why = format!(
        "A page of {origin:?} can't use this stack. A development server that passes on requests of \
         its pages has to leave out the header Origin."
    );
    Some((StatusCode::FORBIDDEN, why))
}

/// Whether no website can have this host. A website can have any name, but no address of this machine.
fn leads_only_here(host: &str) -> bool {
    let Ok(host) = host.parse::<Authority>() else { return false };
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    let is_own = [LOCALHOST, OF_CONTAINERS].iter().any(|own| name.eq_ignore_ascii_case(own));
    is_own || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], expected: Option<u16>) {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")));
        let headers: HeaderMap = headers.collect();
        let status = refusal(&Uri::from_static("/"), &headers).map(|(status, _)| status.as_u16());
        assert_eq!(status, expected, "{headers:?}");
    }

    #[test]
    fn programs_are_taken_at_any_address_and_at_localhost() {
        for host in [
            "127.0.0.1:3000",
            "localhost:3000",
            "host.docker.internal:3000",
            "LOCALHOST",
            "172.17.0.1:41",
            "[::1]:3000",
        ] {
            check(&[("host", host)], None);
            check(&[("host", host), ("origin", &format!("http://{host}"))], None);
        }
        check(&[], None);
        assert_eq!(refusal(&Uri::from_static("http://127.0.0.1:3000/"), &HeaderMap::new()), None);
    }

    #[test]
    fn a_name_that_a_website_can_have_is_refused() {
        for host in [
            "evil.example:3000",
            "127.0.0.1.evil.example:3000",
            "127.evil.example",
            "localhost.evil.example",
            "127.0.0.1@evil.example",
            "evil.example@127.0.0.1 x",
            "",
        ] {
            check(&[("host", host)], Some(421));
        }
        let (status, _) =
            refusal(&Uri::from_static("http://evil.example/"), &HeaderMap::new()).expect("refused");
        assert_eq!(status, StatusCode::MISDIRECTED_REQUEST);
    }

    #[test]
    fn a_page_of_elsewhere_is_refused_also_of_another_port_or_of_none() {
        for origin in
            ["http://evil.example", "https://127.0.0.1:3000", "http://127.0.0.1:3001", "null", ""]
        {
            check(&[("host", "127.0.0.1:3000"), ("origin", origin)], Some(403));
        }
        let both = [
            ("host", "127.0.0.1:3000"),
            ("origin", "http://127.0.0.1:3000"),
            ("origin", "http://evil.example"),
        ];
        check(&both, Some(403));
    }
}
