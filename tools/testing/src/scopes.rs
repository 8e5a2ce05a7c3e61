//! Compares the scopes of the template's routes with those that slices and views ask for. Where the API takes no tokens,
//! there is nothing to compare: IAM says who may use which route.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_local::template::{Model, Route};
use ringfence_stack::Stack;

use crate::mend;
use crate::template::{binary, check_none, model};

type Scopes = BTreeSet<String>;

/// The scopes that the routes must have, by path. A route of several views lets every caller in who may read one of
/// them; query-views looks at the scopes of the view.
fn expected(stack: &Stack, model: &Model) -> BTreeMap<String, Scopes> {
    let owned =
        |scopes: &[&str]| scopes.iter().map(|scope| (*scope).to_owned()).collect::<Scopes>();
    let views: Vec<_> = stack.views().iter().map(|view| owned(view.scopes)).collect();
    let of_views = match views.iter().any(BTreeSet::is_empty) {
        true => Scopes::new(),
        false => views.into_iter().flatten().collect(),
    };
    let slices = stack
        .slices()
        .map(|(context, slice)| (format!("/{}/{}", context.name, slice.name), owned(slice.scopes)));
    let query = binary(model, "QueryViews");
    let others = model.routes.iter().filter(|route| route.method == "GET").map(|route| {
        let of_views = (route.function == query).then(|| of_views.clone());
        (route.path.clone(), of_views.unwrap_or_default())
    });
    // run-commands looks at the scopes of the slice.
    let queued = ("/commands/{context}/{slice}".to_owned(), Scopes::new());
    others.chain(slices).chain([queued]).collect()
}

/// A line for each route that differs.
fn differing(routes: &[Route], expected: &BTreeMap<String, Scopes>) -> Vec<String> {
    let line = |route: &Route| {
        let expected = expected.get(&route.path)?;
        let Some(found) = &route.token_scopes else {
            let path = &route.path;
            let open =
                format!("template.yaml: the route {path} takes no tokens, but asks for scopes");
            return (!expected.is_empty()).then_some(open);
        };
        let found: Scopes = found.iter().cloned().collect();
        (found != *expected).then(|| {
            let scopes = expected.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let right = match expected.is_empty() {
                true => "no AuthorizationScopes".to_owned(),
                false => format!("`Auth: {{ AuthorizationScopes: [{scopes}] }}`"),
            };
            format!("template.yaml: the route {} must have {right}: {}", route.path, mend::HINT)
        })
    };
    let takes_tokens = routes.iter().any(|route| route.token_scopes.is_some());
    routes.iter().filter(|_| takes_tokens).filter_map(line).collect()
}

/// Panics unless each route that takes tokens has the scopes of its slice, or of the views. Under `UPDATE=1` it writes
/// them before it looks.
pub(crate) fn every_route_has_the_scopes_of_its_slice_or_views(stack: &Stack) {
    let before = model();
    let expected = expected(stack, &before);
    if mend::is_asked() && !differing(&before.routes, &expected).is_empty() {
        mend::template(|mut text| {
            for (path, scopes) in &expected {
                text = mend::with_scopes(&text, path, scopes).unwrap_or(text);
            }
            text
        });
    }
    check_none(&differing(&model().routes, &expected));
}

#[test]
fn a_route_whose_scopes_differ_is_named_with_what_to_write() {
    let route = |path: &str, scopes: Option<&[&str]>| Route {
        method: "POST".to_owned(),
        path: path.to_owned(),
        function: "book-room".to_owned(),
        token_scopes: scopes.map(|scopes| scopes.iter().map(|it| (*it).to_owned()).collect()),
    };
    let scopes = |scopes: &[&str]| scopes.iter().map(|it| (*it).to_owned()).collect::<Scopes>();
    let expected: BTreeMap<_, _> =
        [("/a".to_owned(), scopes(&["x", "y"])), ("/b".to_owned(), scopes(&[]))].into();
    let found = |routes: &[Route]| differing(routes, &expected);
    assert_eq!(found(&[route("/a", Some(&["y", "x"])), route("/b", Some(&[]))]), [""; 0]);
    // IAM's API.
    assert_eq!(found(&[route("/a", None), route("/b", None)]), [""; 0]);
    let lines = found(&[route("/a", Some(&["x"])), route("/b", Some(&["x"]))]);
    assert!(lines[0].contains("/a must have `Auth: { AuthorizationScopes: [x, y] }`"), "{lines:?}");
    assert!(lines[1].contains("/b must have no AuthorizationScopes"), "{lines:?}");
    let lines = found(&[route("/a", None), route("/b", Some(&[]))]);
    assert_eq!(lines, ["template.yaml: the route /a takes no tokens, but asks for scopes"]);
}
