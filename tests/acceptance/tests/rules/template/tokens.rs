//! The issuer of tokens: the stack's user pool, or the one that a parameter names.

use std::fs;

use clap::Parser;
use ringfence_local::template::Template;
use ringfence_local::workspace_root;
use ringfence_template::written::{StackPlace, written};

use super::written::{New, json_of, starter};

/// The template and the place of a new stack whose API takes tokens.
fn with_tokens() -> (String, StackPlace) {
    let folder = tempfile::tempdir().unwrap();
    let stack = folder.path().join("my-shop");
    let line = ["ringfence-new", stack.to_str().unwrap(), "--auth", "jwt"];
    New::parse_from(line).stack.write().unwrap();
    (fs::read_to_string(stack.join("template.yaml")).unwrap(), StackPlace::of(&stack))
}

#[test]
fn a_stack_takes_tokens_of_its_user_pool_or_of_the_issuer_that_a_parameter_names() {
    let (new, _) = with_tokens();
    let shop = fs::read_to_string(workspace_root().join("template.yaml")).unwrap();
    for text in [&new, &shop] {
        let seen = |set: &[&str]| {
            let mut template = Template::parse(text).unwrap();
            set.iter().for_each(|parameter| template.set(parameter).unwrap());
            let model = template.model("http://127.0.0.1:1").map_err(|error| error.to_string())?;
            assert!(model.takes_tokens());
            let outputs = model.outputs.keys();
            let of_pool =
                outputs.filter(|name| name.starts_with("UserPool") || *name == "TokenUrl");
            assert_eq!(of_pool.count(), 0, "one machine has no user pool");
            Ok::<_, String>(model.functions[0].environment["JWT_ISSUERS"].clone())
        };
        let pool = "https://cognito-idp.us-east-1.amazonaws.com/ringfence-local-UserPool";
        let issuer = "JwtIssuer=https://id.example.com/";
        let audience = "JwtAudience=shop,app";
        assert_eq!(seen(&[]), Ok(format!("main={pool}")));
        assert_eq!(seen(&[issuer, audience]), Ok("main=https://id.example.com/".to_owned()));
        let own = "JwtIssuers=main=https://a,old=https://id.example.com/";
        assert_eq!(seen(&[issuer, audience, own]), Ok(own["JwtIssuers=".len()..].to_owned()));
        assert!(seen(&[issuer]).unwrap_err().contains("JwtAudience has to name"));
        for (name, parameter) in json_of(text)["Parameters"].as_object().unwrap() {
            assert!(parameter.get("Default").is_some(), "the first deploy asks for {name}");
        }
    }
}

#[test]
fn a_new_stack_with_tokens_is_current_and_another_issuer_needs_no_pool() {
    let (new, place) = with_tokens();
    let mut stack = starter().stack;
    assert_eq!(written(&new, &stack, &place, None).unwrap(), new);

    let begin = new.find("              issuer: !If").unwrap();
    let end = begin + new[begin..].find("            IdentitySource").unwrap();
    let issuer = "              issuer: https://id.example.com/\n              audience: [shop]\n";
    let own = format!("{}{issuer}{}", &new[..begin], &new[end..]);
    let of_own = json_of(&written(&own, &stack, &place, None).unwrap());
    assert!(of_own["Resources"].get("UserPool").is_none());
    assert!(of_own["Parameters"].get("JwtIssuer").is_none());
    assert!(of_own["Resources"].to_string().contains("AuthorizationScopes"));

    // Cognito can't give this scope, and another issuer can.
    stack.contexts[0].slices[0].scopes = Some(&["admin"]);
    let error = written(&new, &stack, &place, None).unwrap_err().to_string();
    assert!(error.contains("the scope admin: a user pool gives scopes of the form"), "{error}");
    written(&own, &stack, &place, None).unwrap();
}
