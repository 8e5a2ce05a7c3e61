//! Decides which requests the console answers. Every request passes here.
//!
//! A page of another site in the same browser can send requests to 127.0.0.1, and a name of that site can even lead
//! there. So the guard checks the host of each request, the origin of each request that changes something, and the
//! token, which only the terminal of `ringfence console` has shown.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, HeaderName, LOCATION, ORIGIN,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

/// Headers of each answer. A page loads nothing from elsewhere, runs only the console's script file, and can't be
/// framed by another page. A page with another policy names its own, which replaces this one.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // With `no-referrer`, a browser would send a form of the console with the origin `null`.
    (REFERRER_POLICY, "same-origin"),
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

const WRONG_TOKEN: &str = "This request has no token, or a wrong one. Open the address that `ringfence console` has \
                           printed; it has the token.\n";
const NOT_A_PAGE: &str = "Only pages of this console can change the stack.\n";
const READS_ONLY: &str = "This console only reads. To change the stack, start it with --write.\n";

/// The expected values of each request.
pub(crate) struct Guard {
    port: u16,
    token: Option<String>,
    may_write: bool,
}

impl Guard {
    /// For a console at this port of 127.0.0.1. Without a token everyone on this machine has access.
    pub(crate) fn new(port: u16, token: Option<String>, may_write: bool) -> Self {
        Self { port, token, may_write }
    }

    /// These pages under the guard.
    pub(crate) fn over(self, pages: Router) -> Router {
        pages.layer(from_fn_with_state(Arc::new(self), guarded))
    }

    /// The answer that refuses or redirects a request, if it does not go to the page.
    fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let host = text(HOST).unwrap_or_default();
        let port = self.port;
        // Browsers leave out port 80.
        let name = host.strip_suffix(&format!(":{port}")).or((port == 80).then_some(host));
        if !name.is_some_and(|name| ["127.0.0.1", "localhost"].contains(&name)) {
            let why =
                format!("This console is at http://127.0.0.1:{port}/, and not at {host:?}.\n");
            return Some((StatusCode::MISDIRECTED_REQUEST, why).into_response());
        }
        let unknown = self.token.as_ref().and_then(|token| self.ask(token, host, uri, headers));
        if unknown.is_some() || [Method::GET, Method::HEAD].contains(method) {
            return unknown;
        }
        let why = match text(ORIGIN) == Some(&*format!("http://{host}")) {
            false => NOT_A_PAGE,
            true if !self.may_write => READS_ONLY,
            true => return None,
        };
        Some((StatusCode::FORBIDDEN, why).into_response())
    }

    /// The answer to a request without the cookie. If the URL has the token, the browser is redirected to the same URL
    /// without it, and gets the cookie.
    fn ask(&self, token: &str, host: &str, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
        // Cookies of a host go to all its ports.
        let name = format!("ringfence-{}", self.port);
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut cookies = cookies.flat_map(|cookies| cookies.split("; "));
        let of_cookie =
            |cookie: &str| Some(cookie.strip_prefix(&name)?.strip_prefix('=')?.to_owned());
        if cookies.any(|cookie| of_cookie(cookie).is_some_and(|given| same(&given, token))) {
            return None;
        }
        let parameters = uri.query().unwrap_or_default().split('&');
        let (given, others): (Vec<_>, Vec<_>) =
            parameters.partition(|parameter| parameter.starts_with("token="));
        let given = given.first().and_then(|given| given.strip_prefix("token="));
        if !given.is_some_and(|given| same(given, token)) {
            return Some((StatusCode::UNAUTHORIZED, WRONG_TOKEN).into_response());
        }
        let query = others.join("&");
        let query = if query.is_empty() { query } else { format!("?{query}") };
        let location = format!("http://{host}{}{query}", uri.path());
        let cookie = format!("{name}={token}; HttpOnly; SameSite=Strict; Path=/");
        Some((StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, location)]).into_response())
    }
}

/// Compares in constant time, which does not show where two texts differ.
fn same(given: &str, token: &str) -> bool {
    let differ = given.bytes().zip(token.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    given.len() == token.len() && differ == 0
}

async fn guarded(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let answer = guard.answer(request.method(), request.uri(), request.headers());
    let mut response = match answer {
        None => next.run(request).await,
        Some(answer) => answer,
    };
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    const HOST_HERE: &str = "127.0.0.1:7";

    /// The answer of a console at port 7 to a request with these headers.
    async fn answer(guard: Guard, method: &str, url: &str, headers: &[(&str, &str)]) -> Response {
        let page = get(async || "page").post(async || "changed");
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        guard.over(Router::new().route("/", page)).oneshot(request).await.expect("an answer")
    }

    fn with_token() -> Guard {
        Guard::new(7, Some("secret".to_owned()), true)
    }

    fn open(may_write: bool) -> Guard {
        Guard::new(7, None, may_write)
    }

    #[tokio::test]
    async fn a_token_becomes_a_cookie_and_leaves_the_url() {
        let here = ("host", HOST_HERE);
        let come = answer(with_token(), "GET", "/?a=1&token=secret&tokens=2", &[here]).await;
        assert_eq!(come.status(), StatusCode::SEE_OTHER);
        assert_eq!(come.headers()[LOCATION], "http://127.0.0.1:7/?a=1&tokens=2");
        let cookie = come.headers()[SET_COOKIE].to_str().expect("a text").to_owned();
        assert_eq!(cookie, "ringfence-7=secret; HttpOnly; SameSite=Strict; Path=/");
        let cookie = ("cookie", "other=1; ringfence-7=secret");
        let seen = answer(with_token(), "GET", "/", &[here, cookie]).await;
        assert_eq!(seen.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn nobody_sees_anything_without_the_token() {
        for (url, cookie) in [
            ("/", ""),
            ("/?tokens=secret", ""),
            ("/?token…=secret", ""),
            ("/?xtoken=secret", ""),
            ("/?token=", ""),
            ("/?token=secre", ""),
            ("/?token=secret1", ""),
            ("/", "ringfence-7=wrong!"),
            ("/", "ringfence-8=secret"),
            ("/", "ringfence-77=secret"),
            ("/", "ringfence-7…=secret"),
        ] {
            let headers = [("host", HOST_HERE), ("cookie", cookie)];
            let refused = answer(with_token(), "GET", url, &headers).await;
            assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{url} {cookie}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_here_is_refused() {
        for (host, expected) in [
            (HOST_HERE, 200),
            ("localhost:7", 200),
            ("127.0.0.1:8", 421),
            ("127.0.0.2:7", 421),
            ("127.evil.example:7", 421),
            ("127.0.0.1.evil.example:7", 421),
            ("127.0.0.1", 421),
            ("evil.example:7", 421),
        ] {
            let answer = answer(open(true), "GET", "/", &[("host", host)]).await;
            assert_eq!(answer.status(), expected, "{host}");
        }
        assert_eq!(answer(open(true), "GET", "/", &[]).await.status(), 421);
        let at_80 = answer(Guard::new(80, None, true), "GET", "/", &[("host", "localhost")]);
        assert_eq!(at_80.await.status(), 200);
    }

    #[tokio::test]
    async fn only_pages_of_this_console_change_anything_and_only_if_it_may_write() {
        let here = ("host", HOST_HERE);
        for (may_write, origin, expected) in [
            (true, "http://127.0.0.1:7", 200),
            (false, "http://127.0.0.1:7", 403),
            (true, "http://localhost:7", 403),
            (true, "http://127.0.0.1:8", 403),
            (true, "null", 403),
        ] {
            let answer = answer(open(may_write), "POST", "/", &[here, ("origin", origin)]).await;
            assert_eq!(answer.status(), expected, "{origin}, may write: {may_write}");
        }
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "OTHER"] {
            assert_eq!(answer(open(true), method, "/", &[here]).await.status(), 403, "{method}");
        }
        assert_eq!(answer(open(false), "HEAD", "/", &[here]).await.status(), 200);
    }

    #[tokio::test]
    async fn every_answer_forbids_what_is_from_elsewhere() {
        for url in ["/", "/nothing", "/?token=secret"] {
            let answer = answer(with_token(), "GET", url, &[("host", HOST_HERE)]).await;
            for (name, value) in HEADERS {
                assert_eq!(answer.headers()[&name], value, "{url}");
            }
        }
    }
}
