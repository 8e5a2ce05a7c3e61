//! The outputs of a stack on this machine.

use std::collections::BTreeMap;

use super::{document::View, error::TemplateError, intrinsics::Place};

/// The parts of a user pool. This machine has none: `ringfence token` makes its tokens.
const COGNITO: [&str; 3] =
    ["AWS::Cognito::UserPool", "AWS::Cognito::UserPoolClient", "AWS::Cognito::UserPoolDomain"];

/// The outputs whose conditions hold, without those of a user pool.
pub(super) fn outputs(view: &View<'_>) -> Result<BTreeMap<String, String>, TemplateError> {
    let outputs = view.resolver.document["Outputs"].as_object().into_iter().flatten();
    let mut found = BTreeMap::new();
    for (name, output) in outputs {
        let place = Place { resource: "Outputs", property: name };
        let (value, text) = (&output["Value"], output["Value"].to_string());
        let names = |id: &str| {
            let references = [
                format!("\"{id}\""),
                format!("\"{id}."),
                format!("${{{id}}}"),
                format!("${{{id}."),
            ];
            references.iter().any(|reference| text.contains(reference))
        };
        let mut of_pool = COGNITO.iter().flat_map(|kind| view.all(kind));
        if view.is_there("Outputs", output)? && !of_pool.any(|(id, _)| names(id)) {
            found.insert(name.clone(), view.resolver.text(place, value)?);
        }
    }
    Ok(found)
}
