//! Filled forms, and the JSON that is sent.

use std::collections::BTreeMap;

use ringfence_schemas::Member;
use serde_json::json;

use super::*;

const INTEGER: Shape = Shape::Integer { min: 1, max: 9_999 };

/// An object. A name with `?` at its end is an optional member.
fn object<const N: usize>(members: [(&str, Shape); N]) -> Shape {
    let member = |(name, shape): (&str, Shape)| {
        let is_optional = name.ends_with('?');
        (name.trim_end_matches('?').to_owned(), Member { is_optional, shape })
    };
    Shape::Object(members.into_iter().map(member).collect())
}

fn list(item: Shape) -> Shape {
    Shape::List { item: Box::new(item), min: 0, max: Some(20) }
}

fn order() -> Shape {
    object([
        ("orderId", Shape::STRING),
        ("price", object([("amount", INTEGER)])),
        ("productIds", list(Shape::STRING)),
        ("quantities", Shape::Map { keys: None, value: Box::new(INTEGER), min: 0, max: None }),
        ("note?", Shape::STRING),
        ("coupon", Shape::Nullable(Box::new(Shape::STRING))),
        ("paid", Shape::Boolean),
        ("lines", list(Shape::Any)),
    ])
}

fn form(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_form_that_was_filled_in_is_the_command_s_json() {
    let filled = form(&[
        ("f.orderId", "o-1"),
        ("f.price.amount", "4900"),
        ("f.productIds", "p-1\r\n p-2 \n\n"),
        ("f.quantities", "p-1 = 2\r\np-2=1"),
        ("f.note", ""),
        ("f.coupon", ""),
        ("f.paid", "true"),
        ("f.lines", r#"[{"n":1}]"#),
    ]);
    let expected = json!({
        "orderId": "o-1", "price": { "amount": 4900 }, "productIds": ["p-1", "p-2"],
        "quantities": { "p-1": 2, "p-2": 1 }, "coupon": null, "paid": true, "lines": [{ "n": 1 }],
    });
    assert_eq!(json(&order(), &filled), Ok(expected.clone()));
    let page = inputs(&order(), &super::form(&order(), &expected)).into_string();
    for part in [
        r#"name="f.price.amount" value="4900" inputmode="decimal" placeholder="1 to 9999""#,
        ">p-1\np-2</textarea>",
        ">p-1 = 2\np-2 = 1</textarea>",
        r#"placeholder="one on each line, at most 20""#,
        "checked",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn text_that_is_no_number_is_sent_and_text_that_is_no_json_is_named() {
    let sent = json(&order(), &form(&[("f.price.amount", "many")])).unwrap();
    assert_eq!((&sent["price"]["amount"], &sent["orderId"]), (&json!("many"), &json!("")));
    // It would be rounded, so it is sent as text, and the slice explains what it takes.
    let long = form(&[("f.price.amount", "1584097275961.1234")]);
    assert_eq!(json(&order(), &long).unwrap()["price"]["amount"], "1584097275961.1234");
    let error = json(&order(), &form(&[("f.lines", "[")])).unwrap_err();
    assert!(error.starts_with("lines: is not JSON"), "{error}");
    let error = json(&order(), &form(&[("f.quantities", "p-1: 2")])).unwrap_err();
    assert_eq!(error, "quantities: `p-1: 2` is not `name = value`");
    let again = inputs(&order(), &form(&[("f.orderId", "o-1"), ("f.lines", "[")])).into_string();
    for part in [r#"value="o-1""#, ">[</textarea>"] {
        assert!(again.contains(part), "{part}: {again}");
    }
    // A line can't have this name.
    let quantities = Shape::Map { keys: None, value: Box::new(INTEGER), min: 0, max: None };
    let odd = json!({ "a = b": 1 });
    assert_eq!(json(&quantities, &super::form(&quantities, &odd)), Ok(odd));
}

#[test]
fn an_optional_object_is_left_out_if_all_its_inputs_are_empty() {
    let kinds = Shape::Choice(["file".to_owned(), "page".to_owned()].into());
    let of = object([("artifact?", object([("uri", Shape::STRING), ("kind", kinds)]))]);
    let page = inputs(&of, &[]).into_string();
    assert!(page.contains(r#"<option value=""></option>"#), "{page}");
    let sent = |uri| json(&of, &form(&[("f.artifact.uri", uri), ("f.artifact.kind", "")]));
    assert_eq!(sent(""), Ok(json!({})));
    assert_eq!(sent("a"), Ok(json!({ "artifact": { "uri": "a" } })));
}

#[test]
fn of_several_objects_the_chosen_one_is_sent() {
    let members = || {
        let parcel = object([("weight", INTEGER)]);
        BTreeMap::from([
            ("Parcel".to_owned(), parcel),
            ("Pickup".to_owned(), object([("shop", Shape::STRING)])),
        ])
    };
    let tagged = Shape::OneOf { tag: Some("type".to_owned()), members: members() };
    let mut of_one_member = members();
    of_one_member.insert("None".to_owned(), Shape::Null);
    let untagged = object([("way", Shape::OneOf { tag: None, members: of_one_member })]);
    for (of, sent) in [
        (&tagged, json!({ "type": "Parcel", "weight": 3 })),
        (&tagged, json!({ "type": "Pickup", "shop": "s" })),
        (&untagged, json!({ "way": { "Pickup": { "shop": "s" } } })),
        (&untagged, json!({ "way": "None" })),
    ] {
        let mut form = super::form(of, &sent);
        assert!(has_command(&form));
        // The inputs of the other variants are ignored.
        form.push(("f.way.Parcel.weight".to_owned(), "9".to_owned()));
        assert_eq!(json(of, &form), Ok(sent));
        let page = inputs(of, &form).into_string();
        assert!(page.contains("<legend>Pickup</legend>"), "{page}");
    }
}

#[test]
fn a_value_of_html_is_text() {
    let hostile = super::form(&Shape::Any, &json!("</textarea><script>"));
    let page = inputs(&Shape::Any, &hostile).into_string();
    assert!(!page.contains("<script>"), "{page}");
}
