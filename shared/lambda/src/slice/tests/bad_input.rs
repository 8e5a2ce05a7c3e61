//! The answers to input that is not a command.

use ringfence_core::{Slice, route_scopes};
use serde_json::json;

use super::customers::TransferPoints;
use super::reactions::Reprice;
use super::shop::{KeepNote, PlaceOrder, RecordDemand};
use super::{invoke, request, shop};
use crate::slice::invocation::{Invocation, Payload};
use crate::{Issuers, Problem};

fn parsed<S: Slice>(payload: &str) -> Option<Problem> {
    let given = Payload::of(payload).read(&Issuers::default(), route_scopes::<S>());
    match given.and_then(Invocation::<S>::of) {
        Ok(Invocation::Command(Err(problem), _)) | Err(problem) => Some(problem),
        Ok(_) => None,
    }
}

/// The problem of a command, which is the same on every way.
fn refused<S: Slice>(command: &str) -> Option<Problem> {
    let direct = parsed::<S>(command);
    let http = parsed::<S>(&request(command, json!({})).to_string());
    assert_eq!(direct, http, "{command}");
    direct
}

#[track_caller]
fn check<S: Slice>(command: &str, expected: &str) {
    let problem = refused::<S>(command).expect(command);
    assert_eq!((problem.status, problem.detail()), (400, expected), "{command}");
}

#[test]
fn a_fault_of_an_event_is_named_by_its_place_in_the_payload() {
    let event = |detail: &str| {
        format!(r#"{{"detail-type":"Priced","source":"catalog","detail":{detail}}}"#)
    };
    for (detail, expected) in [
        ("null", "detail: must be an object, is null"),
        // Another program put it on the bus.
        (
            r#"{"data":{"total":1584097275961.1234}}"#,
            "detail.data.total: is a number that can't be kept as it is: an integer has 64 bits, any other 15 to 17 \
             digits and at most 1.7e308; send it as a text",
        ),
        ("5", "detail: must be an object, is 5"),
        (r#"{"id":"a"}"#, "detail.type: is missing"),
        (r#"{"id":1}"#, "detail.id: must be a string, is 1"),
    ] {
        let problem = parsed::<Reprice>(&event(detail)).expect(detail);
        assert_eq!((problem.status, problem.detail()), (400, expected), "{detail}");
    }
}

#[test]
fn a_refusal_says_in_plain_words_what_is_wrong() {
    let product = |price: &str| format!(r#"{{"productId":"lamp","price":{price}}}"#);
    for (price, expected) in [
        ("5", "price: must be an object, is 5"),
        (r#"{"currency":"EUR"}"#, "price.amount: is missing"),
        (
            r#"{"amount":-1,"currency":"EUR"}"#,
            "price.amount: must be an integer from 0 to 18446744073709551615, is -1",
        ),
        (
            r#"{"amount":"1","currency":"EUR"}"#,
            r#"price.amount: must be an integer from 0 to 18446744073709551615, is "1""#,
        ),
        (r#"{"amount":1,"currency":"eur"}"#, "price.currency: a currency is three capital letters"),
        (
            r#"{"amount":1,"currency":"EUR","cents":2}"#,
            "price.cents: is unknown; the fields are amount, currency",
        ),
        (r#"{"amount":1,"currency":"EUR","amount":1}"#, "price.amount: is given twice"),
    ] {
        check::<Reprice>(&product(price), expected);
    }
    check::<PlaceOrder>(
        r#"{"":1,"orderId":"o","customerId":"c","productIds":["p"]}"#,
        r#""": is unknown; the fields are orderId, customerId, productIds, quantities"#,
    );
    // These lists contain the members that identify an event and a request.
    for list in ["[]", r#"[{"http":{}}]"#, "[null,1]"] {
        check::<Reprice>(list, "body: must be an object");
    }

    check::<PlaceOrder>(
        r#"{"orderId":"o","customerId":"c","productIds":["p"],"quantities":{"p":0}}"#,
        "quantities.p: must be an integer from 1 to 4294967295, is 0",
    );
    check::<PlaceOrder>(
        r#"{"orderId":"o","customerId":"c","productIds":{}}"#,
        "productIds: must be a list, is an object",
    );

    check::<RecordDemand>(
        r#"{"type":"Recall","productId":"p","orderId":"o"}"#,
        "type: has an unknown value; the values are Record, Ignore",
    );
    check::<RecordDemand>(r#"{"productId":"p","orderId":"o"}"#, "type: is missing");
    check::<RecordDemand>(r#"{"type":"Record","productId":"p"}"#, "orderId: is missing");
    check::<RecordDemand>(
        r#"{"type":"Record","productId":"p","orderId":7}"#,
        "orderId: must be a string, is 7",
    );

    check::<TransferPoints>(
        r#"{"from":"ada","to":"bob","points":1.5}"#,
        "points: must be an integer from 0 to 18446744073709551615, is 1.5",
    );
}

#[test]
fn free_json_is_kept_as_it_is_or_refused() {
    let note = |note: &str| format!(r#"{{"orderId":"o","note":{note}}}"#);
    check::<KeepNote>(
        &note(r#"{"lines":[{"sum":1},{"sum":1,"sum":2}]}"#),
        "note.lines[1].sum: is given twice",
    );
    check::<KeepNote>(
        &note(r#"{"total":0.1000000000000000055}"#),
        "note.total: is a number that can't be kept as it is: an integer has 64 bits, \
         any other 15 to 17 digits and at most 1.7e308; send it as a text",
    );
    let deep = note(&format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)));
    let problem = refused::<KeepNote>(&deep).expect("it is too deep");
    assert!(problem.detail().ends_with(": nests deeper than 30 levels"), "{}", problem.detail());
    assert_eq!(refused::<KeepNote>(&note(r#"{"total":0.1,"n":18446744073709551615}"#)), None);
}

#[test]
fn surroundings_of_a_direct_command_are_as_strict() {
    let check = |payload: &str, expected: &str| {
        let problem = parsed::<KeepNote>(payload).expect(payload);
        assert_eq!((problem.status, problem.detail()), (400, expected));
    };
    let command = r#""command":{"orderId":"a"}"#;
    check(&format!(r#"{{{command},{command}}}"#), "command: is given twice");
    check(r#"{"command":{"orderId":"a","orderId":"b"}}"#, "command.orderId: is given twice");
    check(&format!(r#"{{{command},"commandId":7}}"#), "commandId: must be a string, is 7");
    check(r#"{"command":[]}"#, "command: must be an object");
    let deep = |levels| {
        format!(
            r#"{{"command":{{"orderId":"a","note":{}1{}}}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    assert_eq!(parsed::<KeepNote>(&deep(28)), None);
    let problem = parsed::<KeepNote>(&deep(29)).expect("it is too deep");
    assert!(problem.detail().ends_with(": nests deeper than 31 levels"), "{}", problem.detail());
    assert_eq!(parsed::<KeepNote>(&format!(r#"{{{command}}}"#)), None);
    let long = format!(r#"{{{command},"commandId":"{}"}}"#, "k".repeat(400_000));
    assert_eq!(parsed::<KeepNote>(&long).map(|problem| problem.status), Some(413));
}

#[test]
fn the_line_of_a_malformed_command_has_the_ids_that_came_with_it() {
    let headers = json!({ "idempotency-key": "k-1", "x-correlation-id": "c-1" });
    let direct = json!({ "command": [], "commandId": "k-1", "correlationId": "c-1" });
    for payload in [request("[]", headers.clone()), request("{}", headers), direct] {
        let invoked = invoke(&shop(), payload);
        let line = invoked.line();
        assert_eq!((line.outcome, line.attempts), ("malformed", 0));
        let ids = [line.command_id.as_deref(), line.correlation_id.as_deref()];
        assert_eq!(ids, [Some("k-1"), Some("c-1")]);
    }
}

#[test]
fn text_of_a_caller_is_cut_before_it_is_repeated() {
    let shop = shop();
    let hostile = |character: &str| character.repeat(300_000 / character.len());
    for text in [hostile("\u{7f}"), hostile("\""), hostile("\u{1}\u{2}"), hostile("🎈")] {
        // The author of a type may write any message.
        let document = Problem::malformed(&text, &text).document().to_string();
        assert!(document.len() < 4_096, "{}", document.len());
        for command in [
            json!({ &text: 1 }),
            json!({ "orderId": text, "customerId": "c", "productIds": [] }),
            json!({ "orderId": "o", "customerId": "c", "productIds": text }),
        ] {
            // The command must not exceed the limit of a command's size.
            let command = command.to_string();
            let command = if command.len() < 350_000 { command } else { text.clone() };
            let invoked = invoke(&shop, request(&command, json!({})));
            let line = invoked.line().log().json.to_string();
            let answer = invoked.answer.expect("an answer").to_string();
            assert!(answer.contains("problem:malformed"), "{answer}");
            assert!(answer.len() < 8_192 && line.len() < 4_096, "{} {}", answer.len(), line.len());
        }
    }
}
