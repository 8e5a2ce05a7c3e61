use super::*;
use crate::testing::{Does, Http, Smtp, aws, delivery, event, secret, secret_at, trust};

/// A user and a password as a URL has them.
const USER: &str = "shop:p%40ss%3A%20word";

fn mail(to: &str) -> Mail {
    Mail {
        to: to.parse().expect("an address"),
        subject: "Your order: Café".to_owned(),
        text: "Dear Ada,\n.\nit is on its way.\n".to_owned(),
    }
}

fn mailer(by: By) -> Mailer {
    let from = "Shop <shop@example.com>".parse().expect("a sender");
    Mailer { from, by, clock: Clock::fixed(1_719_100_800_000) }
}

async fn by_smtp(url: &str, root: &str) -> Mailer {
    mailer(By::Smtp(Box::new(smtp::Smtp::new(secret(url).await, trust(root)))))
}

async fn send(mailer: &Mailer, to: &str) -> Result<(), Failed> {
    mailer.send(&mail(to), &delivery(&event())).await
}

#[tokio::test]
async fn a_mail_arrives_over_each_kind_of_connection_and_a_repeat_has_its_id() {
    let mut texts = Vec::new();
    for (server, scheme, user, query) in [
        (Smtp::Tls("server.pem"), "smtps", USER, ""),
        (Smtp::StartTls, "smtp", USER, "?tls=required"),
        (Smtp::Plain, "smtp", "", ""),
    ] {
        let (address, arrived) = server.start().await;
        let at = if user.is_empty() { "" } else { "@" };
        let url = format!("{scheme}://{user}{at}{address}{query}");
        let mailer = by_smtp(&url, "private-root.pem").await;
        for _ in 0..2 {
            send(&mailer, "ada@example.org").await.expect("it is sent");
        }
        let arrived = arrived.lock().expect("no panic").clone();
        let [first, second] = &arrived[..] else { panic!("two mails: {arrived:?}") };
        assert_eq!(first, second);
        assert_eq!((&*first.from, &*first.to), ("shop@example.com", "ada@example.org"));
        assert_eq!(first.user, if user.is_empty() { "" } else { "shop" });
        texts.push(first.text.clone());
    }
    let id = id(&delivery(&event()).key());
    let text = &texts[0];
    for line in [
        "From: Shop <shop@example.com>",
        "To: ada@example.org",
        "Date: Sun, 23 Jun 2024 00:00:00 +0000",
        &format!("Message-ID: <{id}@example.com>"),
        &format!("X-Entity-Ref-ID: {id}"),
        "Auto-Submitted: auto-generated",
        "Dear Ada,",
        ".",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert!(text.contains("Subject: Your order: =?utf-8?"), "{text}");
    assert!(texts.iter().all(|other| other == text), "{texts:#?}");
}

#[tokio::test]
async fn a_refusal_of_the_mail_is_final_and_one_of_the_credentials_is_not() {
    let (tls, _) = Smtp::Tls("server.pem").start().await;
    let (plain, _) = Smtp::Plain.start().await;
    let (expired, _) = Smtp::Tls("expired.pem").start().await;
    let (torn, _) = Smtp::Torn.start().await;
    let good = format!("smtps://{USER}@{tls}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = free.local_addr().expect("an address");
    drop(free);
    let root = "private-root.pem";
    for (url, root, to, kind, cause) in [
        (&*good, root, "nobody@example.org", "Undeliverable", "5.1.1 no such person: (address)"),
        (&good, root, "full@example.org", "ForNow", "4.2.2 no room for (address)"),
        (&format!("smtps://shop:wrong@{tls}"), root, "a@b.org", "ForNow", "535"),
        (&good, "other-root.pem", "a@b.org", "ForNow", "UnknownIssuer"),
        (&format!("smtps://{USER}@{expired}"), root, "a@b.org", "ForNow", "xpired"),
        (&format!("smtp://{USER}@{plain}?tls=required"), root, "a@b.org", "ForNow", "STARTTLS"),
        (&format!("smtp://{nobody}"), root, "a@b.org", "ForNow", "refused"),
        (&format!("smtp://{torn}"), root, "a@b.org", "Unknown", ""),
        ("smtp://shop:secret@127.0.0.1", root, "a@b.org", "ForNow", "the URL of an SMTP server is"),
        ("smtps://127.0.0.1?tls=opportunistic", root, "a@b.org", "ForNow", "the URL of"),
        ("https://127.0.0.1", root, "a@b.org", "ForNow", "the URL of"),
    ] {
        let failed = send(&by_smtp(url, root).await, to).await.expect_err(cause);
        let shown = format!("{failed:?}");
        assert!(shown.starts_with(kind) && shown.contains(cause), "{url}, {to}: {shown}");
        let hidden = ["example.org", "b.org", "secret", "wrong"];
        assert!(!hidden.iter().any(|part| shown.contains(part)), "{shown}");
    }
}

#[tokio::test]
async fn a_silent_server_leaves_no_doubt_before_the_text_is_sent() {
    let (address, _) = Smtp::Silent.start().await;
    let mailer = by_smtp(&format!("smtp://{address}"), "private-root.pem").await;
    let failed = send(&mailer, "a@b.org").await.expect_err("no answer");
    assert_eq!(failed, Failed::ForNow("the SMTP server is silent for 6s".to_owned()));
}

#[tokio::test]
async fn a_server_that_is_silent_after_the_text_leaves_a_doubt() {
    let (address, _) = Smtp::SilentAtTheEnd.start().await;
    let mailer = by_smtp(&format!("smtp://{address}"), "private-root.pem").await;
    let failed = send(&mailer, "a@b.org").await.expect_err("no answer");
    assert_eq!(failed, Failed::Unknown("the SMTP server has not answered in 6s".to_owned()));
}

#[tokio::test]
async fn a_mail_that_is_taken_is_sent_although_the_server_does_not_say_goodbye() {
    let (address, arrived) = Smtp::SilentAtTheGoodbye.start().await;
    let mailer = by_smtp(&format!("smtp://{address}"), "private-root.pem").await;
    send(&mailer, "a@b.org").await.expect("it is taken");
    assert_eq!(arrived.lock().expect("no panic").len(), 1);
}

/// All texts of up to six of these letters before `.de`.
#[test]
fn a_mail_can_be_written_to_every_address_that_a_command_takes() {
    let (mut texts, mut taken) = (vec![String::new()], 0);
    for _ in 0..6 {
        let longer = texts.iter().flat_map(|text| {
            ['a', '.', '-', '@', 'é', '"'].map(|letter| format!("{text}{letter}"))
        });
        texts = longer.collect();
        for text in &texts {
            let Ok(address) = format!("{text}.de").parse::<MailAddress>() else { continue };
            let written: Result<lettre::Address, _> = address.to_ascii().parse();
            assert!(written.is_ok_and(|it| it.to_string().is_ascii()), "{text}");
            taken += 1;
        }
    }
    assert!(taken > 300, "{taken}");
}

#[tokio::test]
async fn nothing_adds_a_line_to_the_head_of_a_mail() {
    for text in ["a@b.org\r\nBcc: c@d.org", "a@b.org\n", "<a@b.org>", "a@b.org, c@d.org"] {
        assert!(text.parse::<MailAddress>().is_err(), "{text:?}");
    }
    let (address, arrived) = Smtp::Plain.start().await;
    let mailer = by_smtp(&format!("smtp://{address}"), "private-root.pem").await;
    let (long, huge) = ("x".repeat(501), "x".repeat(TEXT_BYTES_MAX + 1));
    for (subject, text, cause) in [
        ("Hello\r\nBcc: c@d.org", "text", "the subject is one line"),
        (&long, "text", "the subject is one line"),
        ("Hello", &huge, "the text has 262145 bytes"),
    ] {
        let (subject, text) = (subject.to_owned(), text.to_owned());
        let mail = Mail { subject, text, ..mail("ada@example.org") };
        let failed = mailer.send(&mail, &delivery(&event())).await.expect_err(cause);
        assert!(matches!(&failed, Failed::ForGood(text) if text.starts_with(cause)), "{failed:?}");
    }
    assert_eq!(arrived.lock().expect("no panic").len(), 0);
}

#[tokio::test]
async fn ses_gets_the_whole_mail_and_what_it_answers_says_what_follows() {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    let refusal = |status, code: &str| {
        let message = r#"{"message":"Email address is not verified: ada@example.org"}"#;
        Does::Answer(status, format!("x-amzn-ErrorType: {code}:\r\n"), message.to_owned())
    };
    let took = Does::Answer(200, String::new(), r#"{"MessageId":"m"}"#.to_owned());
    let does = vec![
        took,
        refusal(400, "MessageRejected"),
        refusal(400, "BadRequestException"),
        refusal(429, "TooManyRequestsException"),
        refusal(400, "SendingPausedException"),
        refusal(403, "AccessDeniedException"),
        refusal(500, "InternalFailure"),
        Does::Close,
        Does::Silence,
    ];
    let server = Http::start(None, does).await;
    let service = aws(server.address, ["ses", "email", "SESv2"]).await;
    let mailer = mailer(By::Ses(ses::Ses::of(service)));
    send(&mailer, "ada@example.org").await.expect("it is sent");
    let [request] = &server.requests()[..] else { panic!("one request") };
    let (head, body) = request.split_once("\r\n\r\n").expect("a body");
    assert!(head.starts_with("POST /v2/email/outbound-emails HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("/eu-west-1/ses/aws4_request, SignedHeaders="), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let id = id(&delivery(&event()).key());
    let tags = serde_json::json!([{ "Name": "delivery", "Value": id }]);
    assert_eq!(body["EmailTags"], tags);
    assert_eq!(body["Destination"]["ToAddresses"], serde_json::json!(["ada@example.org"]));
    let raw = STANDARD.decode(body["Content"]["Raw"]["Data"].as_str().expect("text"));
    let raw = String::from_utf8(raw.expect("base64")).expect("text");
    assert!(raw.contains(&format!("X-Entity-Ref-ID: {id}\r\n")), "{raw}");

    for (kind, cause) in [
        ("ForGood", "SES: 400 MessageRejected: Email address is not verified: (address)"),
        ("ForGood", "SES: 400 BadRequestException"),
        ("ForNow", "SES: 429 TooManyRequestsException"),
        ("ForNow", "SES: 400 SendingPausedException"),
        ("ForNow", "SES: 403 AccessDeniedException"),
        ("ForNow", "SES: 500 InternalFailure"),
        ("Unknown", "no answer"),
        ("Unknown", "no answer in 4s"),
    ] {
        let failed = format!("{:?}", send(&mailer, "ada@example.org").await.expect_err(cause));
        assert!(failed.starts_with(kind) && failed.contains(cause), "{kind}: {failed}");
        assert!(!failed.contains("example.org"), "{failed}");
    }
}

#[tokio::test]
async fn a_secret_is_read_again_after_five_minutes_and_a_failure_holds_for_two_seconds() {
    let value = |value: &str| {
        let body = serde_json::json!({ "Parameter": { "Value": value } });
        Does::Answer(200, String::new(), body.to_string())
    };
    let none = Does::Answer(400, String::new(), r#"{"__type":"a#ParameterNotFound"}"#.to_owned());
    let server = Http::start(None, vec![none.clone(), value("one"), none, value("two")]).await;
    let clock = Clock::fixed(0);
    let secret = secret_at(server.address, clock.clone()).await;
    let missing = "the parameter /shop/secret can't be read: 400 ParameterNotFound";
    for (at_ms, expected, requests) in [
        (0, missing, 1),
        (1_999, missing, 1),
        (2_000, "one", 2),
        (301_999, "one", 2),
        (302_000, "one", 3),
        (303_999, "one", 3),
        (304_000, "two", 4),
    ] {
        clock.set(at_ms);
        let read = secret.read().await.unwrap_or_else(|error| error.to_string());
        assert_eq!((&*read, server.requests().len()), (expected, requests), "{at_ms}");
    }
    let [.., request] = &server.requests()[..] else { panic!("requests") };
    assert!(
        request.to_lowercase().contains("x-amz-target: amazonssm.getparameter\r\n"),
        "{request}"
    );
    assert!(request.ends_with(r#"{"Name":"/shop/secret","WithDecryption":true}"#), "{request}");
}
