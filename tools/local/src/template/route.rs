//! Routes of the HTTP API, in templates.

use serde::{Deserialize, Deserializer, de::Error};

/// A route of the HTTP API.
#[derive(Clone, Debug)]
pub struct Route {
    /// The HTTP method, or `ANY`.
    pub method: String,
    /// The path, with `{parameters}`.
    pub path: String,
    /// The binary of its function.
    pub function: String,
    /// A token needs one of these scopes, if there are any. `None` if the route takes no tokens.
    pub token_scopes: Option<Vec<String>>,
}

impl Route {
    /// Adds it to the routes of a template. SAM refuses a second route with the same method and path, and so does this.
    pub(super) fn add_to(self, routes: &mut Vec<Self>) -> Result<(), String> {
        let Self { method, path, .. } = &self;
        if path == DEFAULT && method != ANY {
            return Err(format!("{method} {DEFAULT}: it takes all methods, write Method: {ANY}"));
        }
        if routes.iter().any(|it| it.method == *method && it.path == *path) {
            return Err(format!("a second route {method} {path}"));
        }
        routes.push(self);
        Ok(())
    }
}

/// The path of the route for requests that no other route takes.
pub(crate) const DEFAULT: &str = "$default";
/// The method of a route that takes all methods.
pub(crate) const ANY: &str = "ANY";

/// The other methods that a route can have.
const METHODS: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/// The method of a route in a template.
pub(super) fn method<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let method = String::deserialize(from)?.to_uppercase();
    match method == ANY || METHODS.contains(&&*method) {
        true => Ok(method),
        false => {
            let all = METHODS.join(", ");
            Err(D::Error::custom(format!(
                "the method {method}: a route has one of {all}, or {ANY}"
            )))
        }
    }
}

/// The path of a route in a template.
pub(super) fn path<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let path = String::deserialize(from)?;
    let before = path.rsplit_once('/').map(|(before, _)| before);
    match path == DEFAULT || path.starts_with('/') && before.is_some_and(|it| !it.contains("+}")) {
        true => Ok(path),
        false => {
            let example = "a path is one such as /orders/{id}, or /orders/{id+} with a greedy variable at its end";
            Err(D::Error::custom(format!("the path {path}: {example}, or {DEFAULT}")))
        }
    }
}
