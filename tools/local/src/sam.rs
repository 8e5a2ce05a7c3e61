//! The functions for `sam local`, in the layout of `sam build`: a template, and beside it a folder with the binary
//! `bootstrap` for each function.
//!
//! The template has every variable of a function, because SAM passes on no others. One variable names the function of a
//! process: all binaries are the program of the stack.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::{
    environment::Environment,
    functions::{FUNCTION, Functions, keep},
    template::{FunctionResource, Model, Route},
};

/// The folder of a function's code in its container.
const CODE: &str = "/var/task";

/// Writes template and folders into `folder`. Returns the template's path. Each function gets `common` besides its
/// variables, and the files in place of keys of KMS that `here`, the running stack, has for it.
///
/// # Errors
/// A file can't be written, or Lambda has no functions for this machine's processor.
pub(crate) fn write(
    folder: &Path,
    model: Model,
    common: &Environment,
    functions: &Functions,
    here: &Model,
) -> Result<PathBuf> {
    let architecture = match env::consts::ARCH {
        "x86_64" => "x86_64",
        "aarch64" => "arm64",
        other => bail!("Lambda has no functions for the processor {other}"),
    };
    let model = model.with_keys_in(Path::new(CODE));
    for (function, here) in model.functions.iter().zip(&here.functions) {
        let own = folder.join(&function.id);
        fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
        let binary = functions.binary(&function.binary);
        keep(binary.context("a function that is not started")?, own.join("bootstrap"))?;
        for (key, file) in function.key_files().zip(here.key_files()) {
            keep(file, own.join(key.strip_prefix(CODE)?))?;
        }
    }
    let path = folder.join("template.json");
    let text = format!("{:#}\n", template(&model, common, architecture));
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn template(model: &Model, common: &Environment, architecture: &str) -> Value {
    let resources: Map<_, _> =
        model.functions.iter().map(|f| (f.id.clone(), resource(f, &model.routes))).collect();
    json!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Transform": "AWS::Serverless-2016-10-31",
        "Description": "Written by `cargo local --sam` for `sam local`, beside the running stack.",
        "Globals": { "Function": {
            "Runtime": "provided.al2023",
            "Handler": "bootstrap",
            "Architectures": [architecture],
            "Environment": { "Variables": common },
        } },
        "Resources": resources,
    })
}

fn resource(function: &FunctionResource, routes: &[Route]) -> Value {
    let routes = routes.iter().filter(|route| route.function == function.binary);
    let event = |(number, route): (usize, &Route)| {
        let properties = json!({ "Path": route.path, "Method": route.method });
        (format!("Route{number}"), json!({ "Type": "HttpApi", "Properties": properties }))
    };
    let mut variables = json!(function.environment);
    variables[FUNCTION] = json!(function.binary);
    json!({
        "Type": "AWS::Serverless::Function",
        "Properties": {
            "CodeUri": function.id,
            "MemorySize": function.memory_mb,
            "Timeout": function.timeout.as_secs(),
            "LoggingConfig": {
                "LogFormat": "JSON",
                "ApplicationLogLevel": function.log_level.as_deref().unwrap_or("INFO"),
            },
            "Environment": { "Variables": variables },
            "Events": routes.enumerate().map(event).collect::<Map<_, _>>(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;

    const SHOP: &str = r#"
Resources:
  Events:
    Type: AWS::DynamoDB::Table
    Properties: { KeySchema: [{ AttributeName: id, KeyType: HASH }] }
  Dead: { Type: AWS::SQS::Queue }
  Shop:
    Type: AWS::Serverless::Function
    Metadata: { BuildProperties: { Binary: run-shop } }
    Properties:
      Timeout: 60
      MemorySize: 512
      LoggingConfig: { ApplicationLogLevel: DEBUG }
      Environment:
        Variables: { EVENT_TABLE: !Ref Events, QUEUE: !Ref Dead, NONE: !Ref AWS::NoValue }
      Events:
        One: { Type: HttpApi, Properties: { Path: "/{view}/{id+}", Method: get } }
        All: { Type: HttpApi, Properties: { Path: "/{view}", Method: get } }
  Plain:
    Type: AWS::Serverless::Function
    Metadata: { BuildProperties: { Binary: be-plain } }
    Properties: {}
"#;

    fn written() -> Value {
        let shop = Template::parse(SHOP).expect("a template");
        let model = shop.model("http://172.17.0.1:9").expect("a model");
        let common = [("AWS_ENDPOINT_URL_DYNAMODB", "http://172.17.0.1:8")];
        let common = common.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        template(&model, &common, "arm64")
    }

    #[test]
    fn a_function_has_its_folder_limits_and_routes() {
        let written = written();
        let shop = &written["Resources"]["Shop"]["Properties"];
        assert_eq!(shop["CodeUri"], "Shop");
        assert_eq!((&shop["Timeout"], &shop["MemorySize"]), (&json!(60), &json!(512)));
        let logging = json!({ "LogFormat": "JSON", "ApplicationLogLevel": "DEBUG" });
        assert_eq!(shop["LoggingConfig"], logging);
        let route = |path| {
            let properties = json!({ "Path": path, "Method": "GET" });
            json!({ "Type": "HttpApi", "Properties": properties })
        };
        let routes = json!({ "Route0": route("/{view}"), "Route1": route("/{view}/{id+}") });
        assert_eq!(shop["Events"], routes);
        assert_eq!(written["Resources"]["Plain"]["Properties"]["Events"], json!({}));
        assert_eq!(written["Globals"]["Function"]["Architectures"], json!(["arm64"]));
    }

    #[test]
    fn every_variable_is_declared_with_its_value_and_no_value_leaves_it_out() {
        let written = written();
        let variables = &written["Resources"]["Shop"]["Properties"]["Environment"]["Variables"];
        let expected = json!({
            "EVENT_TABLE": "ringfence-local-Events",
            "QUEUE": "http://172.17.0.1:9/000000000000/ringfence-local-Dead",
            "RINGFENCE_FUNCTION": "run-shop",
        });
        assert_eq!(*variables, expected);
        let common = json!({ "AWS_ENDPOINT_URL_DYNAMODB": "http://172.17.0.1:8" });
        assert_eq!(written["Globals"]["Function"]["Environment"]["Variables"], common);
    }
}
