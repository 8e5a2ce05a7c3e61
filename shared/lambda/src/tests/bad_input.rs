//! What callers are told of input that no command is made of, over the commands of all slices.

use std::{fs, path::Path};

use ringfence::{MemoryLog, Slice};
use ringfence_aggregate_log::Command;
use ringfence_document_log::MemoryStore;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{invoke, request, shop};
use crate::aggregate::Aggregates;
use crate::dcb::Dcb;
use crate::document::Documents;
use crate::handler::Handler;
use crate::invocation::{Invocation, Payload};
use crate::problem::Problem;

/// Words of Rust and of serde.
const JARGON: [&str; 18] = [
    "u8",
    "u16",
    "u32",
    "u64",
    "usize",
    "i32",
    "i64",
    "f64",
    "struct",
    "enum",
    "variant",
    "tuple",
    "nonzero",
    "sequence",
    "invalid type",
    "invalid value",
    "expected",
    "`",
];

fn parsed<H: Handler>(payload: &str) -> Option<Problem> {
    Invocation::<H>::parse(&Payload::of(payload)).err()
}

/// What is said of a command, however it comes.
fn refused<H: Handler>(command: &str) -> Option<Problem> {
    let direct = parsed::<H>(command);
    let http = parsed::<H>(&request(command, json!({})).to_string());
    assert_eq!(direct, http, "{command}");
    direct
}

#[track_caller]
fn check<H: Handler>(command: &str, expected: &str) {
    let problem = refused::<H>(command).expect(command);
    assert_eq!((problem.status, problem.detail()), (400, expected), "{command}");
}

/// The command of a slice's sample.
fn sample<H: Handler>() -> Value {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events");
    let sample = fs::read_to_string(samples.join(H::NAME).join("direct.json")).expect(H::NAME);
    let mut sample: Value = serde_json::from_str(&sample).expect(H::NAME);
    if sample.get("command").is_some() { sample["command"].take() } else { sample }
}

/// The pointers of all values within `json`.
fn pointers(json: &Value, at: &str, all: &mut Vec<String>) {
    let inside: Vec<(String, &Value)> = match json {
        Value::Object(object) => object.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(n, v)| (n.to_string(), v)).collect(),
        _ => vec![],
    };
    for (step, value) in inside {
        let at = format!("{at}/{step}");
        pointers(value, &at, all);
        all.push(at);
    }
}

/// Puts what does not belong there into each place of the sample, and leaves each field out.
fn harass<H: Handler>() {
    let sample = sample::<H>();
    assert_eq!(refused::<H>(&sample.to_string()), None, "{}", H::NAME);
    let mut at = vec![];
    pointers(&sample, "", &mut at);
    let wrong = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("\u{7f}\"`, expected u64".repeat(10_000)),
        json!([]),
        json!([[]]),
        json!({}),
        json!({ "\u{1}".repeat(30_000): 1 }),
    ];
    let mut told = 0;
    let mut tell = |command: &Value, pointer: &str| {
        let text = command.to_string();
        assert!(text.len() < 350 * 1_024, "it is not its size that is wrong");
        let Some(problem) = refused::<H>(&text) else { return };
        let context = format!("{} {pointer}: {problem:?}", H::NAME);
        assert_eq!(problem.status, 400, "{context}");
        let document = problem.document();
        let field = document["errors"][0]["field"].as_str().expect("a field");
        let step = pointer.rsplit('/').find(|step| step.parse::<usize>().is_err());
        assert!(field.contains(step.unwrap_or_default()), "{context}");
        // The field's name may be the caller's.
        let message = document["errors"][0]["message"].as_str().expect("a message");
        let words = message.split_once(", is \"").map_or(message, |(said, _)| said);
        let word = JARGON.iter().find(|word| words.contains(**word));
        assert_eq!(word, None, "{context}");
        assert!(document.to_string().len() < 4_096, "{context}");
        told += 1;
    };
    for pointer in &at {
        for wrong in &wrong {
            let mut command = sample.clone();
            *command.pointer_mut(pointer).expect("it is there") = wrong.clone();
            tell(&command, pointer);
        }
        let (parent, step) = pointer.rsplit_once('/').expect("a pointer");
        let mut command = sample.clone();
        if let Some(Value::Object(object)) = command.pointer_mut(parent) {
            object.remove(step);
            tell(&command, pointer);
        }
    }
    let mut command = sample.clone();
    command["unheardOf"] = 1.into();
    assert!(refused::<H>(&command.to_string()).is_some(), "{}", H::NAME);
    tell(&command, "/unheardOf");
    assert!(told > 1, "{}", H::NAME);
}

fn dcb<S: Slice>() {
    harass::<Dcb<S, MemoryLog>>();
}

fn aggregate<C: Command + DeserializeOwned>() {
    harass::<Aggregates<C>>();
}

fn document<C: ringfence_document_log::Command>() {
    harass::<Documents<C, MemoryStore>>();
}

#[test]
fn every_slice_names_the_field_and_its_limit() {
    dcb::<add_product::AddProduct>();
    dcb::<cancel_order::CancelOrder>();
    dcb::<change_course_capacity::ChangeCourseCapacity>();
    dcb::<change_product_name::ChangeProductName>();
    dcb::<change_product_price::ChangeProductPrice>();
    dcb::<change_username::ChangeUsername>();
    dcb::<close_account::CloseAccount>();
    dcb::<confirm_sign_up::ConfirmSignUp>();
    dcb::<create_invoice::CreateInvoice>();
    dcb::<define_course::DefineCourse>();
    dcb::<initiate_sign_up::InitiateSignUp>();
    dcb::<order_product::OrderProduct>();
    dcb::<order_products::OrderProducts>();
    dcb::<place_order::PlaceOrder>();
    dcb::<record_product_demand::RecordProductDemand>();
    dcb::<register_account::RegisterAccount>();
    dcb::<submit_order::SubmitOrder>();
    dcb::<subscribe_student::SubscribeStudent>();
    dcb::<sync_catalog_product::SyncCatalogProduct>();
    dcb::<unsubscribe_student::UnsubscribeStudent>();
    aggregate::<change_customer_email::ChangeCustomerEmail>();
    aggregate::<deactivate_customer::DeactivateCustomer>();
    aggregate::<register_customer::RegisterCustomer>();
    aggregate::<rename_customer::RenameCustomer>();
    aggregate::<transfer_points::TransferPoints>();
    document::<add_to_cart::AddToCart>();
    document::<change_quantity::ChangeQuantity>();
    document::<check_out::CheckOut>();
    document::<remove_from_cart::RemoveFromCart>();
}

#[test]
fn what_is_wrong_is_said_in_plain_words() {
    let product = |price: &str| {
        format!(r#"{{"productId":"lamp","name":"Lamp","description":"","price":{price}}}"#)
    };
    type Add = Dcb<add_product::AddProduct, MemoryLog>;
    for (price, expected) in [
        ("5", "price: must be an object, is 5"),
        (r#"{"currency":"EUR"}"#, "price.amount: is missing"),
        (
            r#"{"amount":-1,"currency":"EUR"}"#,
            "price.amount: must be a whole number from 0 to 18446744073709551615, is -1",
        ),
        (
            r#"{"amount":"1","currency":"EUR"}"#,
            r#"price.amount: must be a whole number from 0 to 18446744073709551615, is "1""#,
        ),
        (
            r#"{"amount":1,"currency":"eur"}"#,
            "price.currency: a currency is three capital letters (ISO 4217), such as EUR",
        ),
        (
            r#"{"amount":1,"currency":"EUR","cents":2}"#,
            "price.cents: is unknown; the fields are amount, currency",
        ),
        (r#"{"amount":1,"currency":"EUR","amount":1}"#, "price.amount: is given twice"),
    ] {
        check::<Add>(&product(price), expected);
    }
    // Lists that have what tells an event and a request, where an object has it.
    for list in ["[]", r#"[{"http":{}}]"#, "[null,1]"] {
        check::<Add>(list, "body: must be an object");
    }

    type Place = Dcb<place_order::PlaceOrder, MemoryLog>;
    check::<Place>(
        r#"{"orderId":"o","customerId":"c","productIds":["p"],"quantities":{"p":0}}"#,
        "quantities.p: must be a whole number from 1 to 4294967295, is 0",
    );
    check::<Place>(
        r#"{"orderId":"o","customerId":"c","productIds":{}}"#,
        "productIds: must be a list, is an object",
    );

    type Record = Dcb<record_product_demand::RecordProductDemand, MemoryLog>;
    check::<Record>(
        r#"{"type":"Recall","productId":"p","orderId":"o"}"#,
        "type: has an unknown value; the values are RecordDemand, RevokeDemand",
    );
    check::<Record>(r#"{"productId":"p","orderId":"o"}"#, "type: is missing");
    check::<Record>(r#"{"type":"RecordDemand","productId":"p"}"#, "orderId: is missing");
    check::<Record>(
        r#"{"type":"RecordDemand","productId":"p","orderId":7}"#,
        "orderId: must be a text, is 7",
    );

    type Points = Aggregates<transfer_points::TransferPoints>;
    check::<Points>(
        r#"{"from":"ada","to":"bob","points":1.5}"#,
        "points: must be a whole number from 0 to 18446744073709551615, is 1.5",
    );
}

#[test]
fn free_json_is_kept_as_it_is_or_refused() {
    type Invoice = Dcb<create_invoice::CreateInvoice, MemoryLog>;
    let invoice = |data: &str| format!(r#"{{"invoiceData":{data}}}"#);
    check::<Invoice>(
        &invoice(r#"{"lines":[{"sum":1},{"sum":1,"sum":2}]}"#),
        "invoiceData.lines[1].sum: is given twice",
    );
    check::<Invoice>(
        &invoice(r#"{"total":0.1000000000000000055}"#),
        "invoiceData.total: is a number that can't be kept as it is: a whole number has 64 bits, \
         any other 15 to 17 digits and at most 1.7e308; send it as a text",
    );
    let deep = invoice(&format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)));
    let problem = refused::<Invoice>(&deep).expect("it is too deep");
    assert!(problem.detail().ends_with(": nests deeper than 30 levels"), "{}", problem.detail());
    assert_eq!(refused::<Invoice>(&invoice(r#"{"total":0.1,"n":18446744073709551615}"#)), None);
}

#[test]
fn surroundings_of_a_direct_command_are_as_strict() {
    type Close = Dcb<close_account::CloseAccount, MemoryLog>;
    let check = |payload: &str, expected: &str| {
        let problem = parsed::<Close>(payload).expect(payload);
        assert_eq!((problem.status, problem.detail()), (400, expected));
    };
    let command = r#""command":{"accountId":"a"}"#;
    check(&format!(r#"{{{command},{command}}}"#), "command: is given twice");
    check(r#"{"command":{"accountId":"a","accountId":"b"}}"#, "command.accountId: is given twice");
    check(&format!(r#"{{{command},"commandId":7}}"#), "commandId: must be a text, is 7");
    check(r#"{"command":[]}"#, "command: must be an object");
    assert_eq!(parsed::<Close>(&format!(r#"{{{command}}}"#)), None);
    let long = format!(r#"{{{command},"commandId":"{}"}}"#, "k".repeat(400_000));
    assert_eq!(parsed::<Close>(&long).map(|problem| problem.status), Some(413));
}

#[test]
fn what_is_repeated_to_a_caller_and_to_the_log_is_bounded() {
    let shop = shop();
    let hostile = |character: &str| character.repeat(300_000 / character.len());
    for text in [hostile("\u{7f}"), hostile("\""), hostile("\u{1}\u{2}"), hostile("🎈")] {
        // Whatever the author of a type says of a value.
        let document = Problem::malformed(&text, &text).document().to_string();
        assert!(document.len() < 4_096, "{}", document.len());
        for command in [
            json!({ &text: 1 }),
            json!({ "orderId": text, "customerId": "c", "productIds": [] }),
            json!({ "orderId": "o", "customerId": "c", "productIds": text }),
        ] {
            // As a text it must not be larger than a command may be.
            let command = command.to_string();
            let command = if command.len() < 350_000 { command } else { text.clone() };
            let invoked = invoke(&shop, request(&command, json!({})));
            let line = invoked.line.json().to_string();
            let answer = invoked.answer.expect("an answer").to_string();
            assert!(answer.contains("problem:malformed"), "{answer}");
            assert!(answer.len() < 8_192 && line.len() < 4_096, "{} {}", answer.len(), line.len());
        }
    }
}
