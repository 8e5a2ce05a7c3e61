use super::*;
use crate::testing::{Does, Http as Server, delivery, event, secret, trust};

const SECRETS: &str =
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";
const NOW_MS: u64 = 1_719_100_800_000;

fn answer(status: u16, headers: &str) -> Does {
    Does::Answer(status, headers.to_owned(), "said\n".to_owned())
}

async fn webhook(url: String, root: &str, private: bool) -> Webhook {
    let clock = Clock::fixed(NOW_MS);
    Webhook::of(&trust(root), url, secret(SECRETS).await, private, clock).expect("a webhook")
}

async fn send(webhook: &Webhook) -> Result<(), Failed> {
    webhook.send(r#"{"orderId":"o1"}"#, &delivery(&event())).await
}

#[tokio::test]
async fn a_request_is_signed_and_a_repeat_has_its_id() {
    let server = Server::start(Some("server.pem"), vec![answer(204, "")]).await;
    let url = format!("https://{}/hooks?of=shop", server.address);
    let webhook = webhook(url, "private-root.pem", true).await;
    send(&webhook).await.expect("it is taken");
    webhook.clock.set(NOW_MS + 1_000);
    send(&webhook).await.expect("it is taken");
    let requests = server.requests();
    let header = |n: usize, name: &str| {
        let lines = requests[n].lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| *found == name).map(|(_, value)| value).collect::<String>()
    };
    assert!(requests[0].starts_with("POST /hooks?of=shop HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].ends_with("\r\n\r\n{\"orderId\":\"o1\"}"), "{}", requests[0]);
    assert_eq!(header(0, "content-type"), "application/json");
    let id = id(&delivery(&event()).key());
    assert_eq!([header(0, "webhook-id"), header(1, "webhook-id")], [id.clone(), id.clone()]);
    for (n, timestamp) in ["1719100800", "1719100801"].into_iter().enumerate() {
        assert_eq!(header(n, "webhook-timestamp"), timestamp);
        let signature = signature::of(SECRETS, &id, timestamp, r#"{"orderId":"o1"}"#);
        assert_eq!(header(n, "webhook-signature"), signature.expect("a signature"));
    }
}

#[tokio::test]
async fn an_answer_says_whether_the_request_is_sent_again() {
    let long = Does::Answer(200, String::new(), "x".repeat(ANSWER_BYTES_MAX + 1));
    for (does, expected) in [
        (long, "Ok"),
        (
            answer(301, "location: https://example.com/\r\n"),
            "ForGood(\"the receiver answers 301: said",
        ),
        (answer(400, ""), "ForGood(\"the receiver answers 400: said"),
        (answer(410, ""), "ForGood"),
        (answer(408, ""), "ForNow"),
        (answer(429, ""), "ForNow(\"the receiver answers 429: said"),
        (answer(500, ""), "ForNow"),
        (answer(503, ""), "ForNow"),
        (Does::Close, "Unknown"),
    ] {
        let server = Server::start(None, vec![does]).await;
        let webhook = webhook(format!("http://{}/", server.address), "private-root.pem", true);
        let sent = format!("{:?}", send(&webhook.await).await);
        let sent = sent.strip_prefix("Err(").unwrap_or(&sent);
        assert!(sent.starts_with(expected), "{expected}: {sent}");
        assert_eq!(server.requests().len(), 1, "{expected}");
    }
    let server = Server::start(None, vec![answer(200, "")]).await;
    let webhook = webhook(format!("http://{}/", server.address), "private-root.pem", true).await;
    let sent = webhook.send(&"x".repeat(BODY_BYTES_MAX + 1), &delivery(&event())).await;
    assert!(matches!(sent, Err(Failed::ForGood(_))), "{sent:?}");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_receiver_that_asks_for_a_pause_gets_one() {
    let date = "retry-after: Sun, 23 Jun 2024 00:00:20 GMT\r\n";
    for (asked, pause_ms) in [
        ("retry-after: 20\r\n", 20_000),
        (date, 20_000),
        ("retry-after: 99999999999\r\n", 1_800_000),
        ("retry-after: soon\r\n", 0),
    ] {
        let server = Server::start(None, vec![answer(429, asked), answer(200, "")]).await;
        let webhook =
            webhook(format!("http://{}/", server.address), "private-root.pem", true).await;
        send(&webhook).await.expect_err("it is refused");
        if pause_ms > 0 {
            webhook.clock.set(NOW_MS + pause_ms - 1);
            let paused = Failed::ForNow("the receiver has asked for a pause".to_owned());
            assert_eq!(send(&webhook).await, Err(paused), "{asked}");
            assert_eq!(server.requests().len(), 1, "{asked}");
        }
        webhook.clock.set(NOW_MS + pause_ms);
        send(&webhook).await.expect("the pause is over");
    }
}

#[tokio::test]
async fn a_silent_receiver_leaves_a_doubt() {
    let server = Server::start(None, vec![Does::Silence]).await;
    let webhook = webhook(format!("http://{}/", server.address), "private-root.pem", true).await;
    assert_eq!(send(&webhook).await, Err(Failed::Unknown("no answer in 10s".to_owned())));
}

#[tokio::test]
async fn a_receiver_that_answers_too_slowly_leaves_a_doubt_until_its_status_has_come() {
    for (head, expected) in [
        ("", "Err(Unknown"),
        ("HTTP/1.1 200 .\r\n\r\n", "Ok"),
        ("HTTP/1.1 400 .\r\n\r\n", "Err(ForGood"),
    ] {
        let server = Server::start(None, vec![Does::Drip(head)]).await;
        let webhook =
            webhook(format!("http://{}/", server.address), "private-root.pem", true).await;
        let sent = format!("{:?}", send(&webhook).await);
        assert!(sent.starts_with(expected), "{head}: {sent}");
    }
}

#[tokio::test]
async fn nothing_is_sent_to_a_server_that_is_not_trusted_or_in_a_private_network() {
    let server = Server::start(Some("server.pem"), vec![answer(200, "")]).await;
    let expired = Server::start(Some("expired.pem"), vec![answer(200, "")]).await;
    let at = |server: &Server| format!("https://{}/", server.address);
    let by_name = format!("https://localhost:{}/", server.address.port());
    for (url, root, private, cause) in [
        (at(&server), "other-root.pem", true, "UnknownIssuer"),
        (at(&expired), "private-root.pem", true, "xpired"),
        (by_name.clone(), "private-root.pem", true, "not valid for name"),
        (by_name, "private-root.pem", false, "the host has a private address"),
        ("https://127.0.0.1:1/".to_owned(), "private-root.pem", true, "refused"),
    ] {
        let sent = send(&webhook(url.clone(), root, private).await).await;
        let is_right = matches!(&sent, Err(Failed::ForNow(text)) if text.contains(cause));
        assert!(is_right, "{url}, {cause}: {sent:?}");
    }
    assert_eq!(server.requests().len() + expired.requests().len(), 0);
}

#[test]
fn a_url_is_of_a_public_server_with_tls_unless_private_ones_are_allowed() {
    use WebhookError::{NotSecure, Private, Url};

    for (url, public, private) in [
        ("https://example.com/hooks?a=b", Ok(()), Ok(())),
        ("https://1.1.1.1:8443/", Ok(()), Ok(())),
        ("https://[2606:4700::1111]/", Ok(()), Ok(())),
        ("http://example.com/", Err(NotSecure), Ok(())),
        ("https://127.0.0.1/", Err(Private), Ok(())),
        ("https://[::1]/", Err(Private), Ok(())),
        ("https://[::ffff:10.0.0.1]/", Err(Private), Ok(())),
        ("https://169.254.169.254/latest", Err(Private), Ok(())),
        ("https://user:password@example.com/", Err(Url), Err(Url)),
        ("ftp://example.com/", Err(Url), Err(Url)),
        ("/hooks", Err(Url), Err(Url)),
        ("", Err(Url), Err(Url)),
        ("https://exa mple.com/", Err(Url), Err(Url)),
    ] {
        assert_eq!((check(url, false), check(url, true)), (public, private), "{url}");
    }
}
