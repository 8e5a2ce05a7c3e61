//! A template as it is read, and as one stack sees it.

use std::{fs, path::Path};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    error::TemplateError,
    intrinsics::{Place, Resolver, long_form},
};

/// A parsed template.
pub struct Template {
    pub(super) document: Value,
}

impl Template {
    /// Reads a template file.
    ///
    /// # Errors
    /// It can't be read or is not YAML.
    pub fn load(path: &Path) -> Result<Self, TemplateError> {
        let text = fs::read_to_string(path)
            .map_err(|source| TemplateError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Reads the template of this stack.
    ///
    /// # Errors
    /// As [`Template::load`].
    pub fn of_stack() -> Result<Self, TemplateError> {
        Self::load(&crate::workspace::stack_root().join("template.yaml"))
    }

    /// Parses a template's text.
    ///
    /// # Errors
    /// It is not YAML.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Ok(Self { document: long_form(serde_yaml_ng::from_str(text)?)? })
    }

    /// The properties of the table of this logical id.
    ///
    /// # Errors
    /// There is no such table, or a property is not understood.
    pub fn table(&self, id: &str) -> Result<Value, TemplateError> {
        let view = View { resolver: Resolver { document: &self.document, queues: "" } };
        let tables = view.resources("AWS::DynamoDB::Table");
        let table = tables.into_iter().find(|(found, _)| *found == id);
        let (resource, body) = table.ok_or_else(|| TemplateError::NoTable { id: id.to_owned() })?;
        view.property(resource, body, "Properties")
    }
}

/// A template seen with the names of one stack.
pub(super) struct View<'a> {
    pub(super) resolver: Resolver<'a>,
}

impl<'a> View<'a> {
    /// The resources of one type, by logical id.
    pub(super) fn resources(&self, kind: &str) -> Vec<(&'a str, &'a Value)> {
        let resources = self.resolver.document["Resources"].as_object();
        let of_kind = resources
            .into_iter()
            .flatten()
            .filter(|(_, body)| body["Type"] == kind)
            .map(|(id, body)| (id.as_str(), body));
        of_kind.collect()
    }

    /// Whether this stack has the resource: one with a condition is there if the condition holds.
    pub(super) fn is_there(&self, resource: &str, body: &Value) -> Result<bool, TemplateError> {
        let place = Place { resource, property: "Condition" };
        let condition = body.get("Condition").map(|name| serde_json::json!({ "Condition": name }));
        condition.map_or(Ok(true), |condition| self.resolver.holds(place, &condition))
    }

    pub(super) fn local_name(&self, resource: &str) -> Result<String, TemplateError> {
        self.resolver.local_name(Place { resource, property: "name" }, resource)
    }

    /// The value at a path of a resource (`Properties.Environment.Environment`), resolved and read into `T`. A
    /// missing value is read as null, so that an `Option` is `None`.
    pub(super) fn property<T: DeserializeOwned>(
        &self,
        resource: &str,
        body: &Value,
        property: &str,
    ) -> Result<T, TemplateError> {
        let found = property.split('.').try_fold(body, |value, key| value.get(key));
        let value = match found {
            Some(value) => self.resolver.resolve(Place { resource, property }, value)?,
            None => None,
        };
        serde_json::from_value(value.unwrap_or_default()).map_err(|source| {
            TemplateError::Property {
                resource: resource.to_owned(),
                property: property.to_owned(),
                source,
            }
        })
    }

    /// A function's property: its own, or else that of `Globals.FunctionResource`. Maps are merged.
    pub(super) fn function_property<T: DeserializeOwned>(
        &self,
        resource: &str,
        body: &Value,
        property: &str,
    ) -> Result<T, TemplateError> {
        let global = property
            .split('.')
            .try_fold(&self.resolver.document["Globals"]["Function"], |v, key| v.get(key));
        let own = property.split('.').try_fold(&body["Properties"], |v, key| v.get(key));
        let merged = match (global, own) {
            (Some(Value::Object(global)), Some(Value::Object(own))) => {
                let both: Map<_, _> =
                    global.iter().chain(own).map(|(k, v)| (k.clone(), v.clone())).collect();
                Value::Object(both)
            }
            (global, own) => own.or(global).cloned().unwrap_or_default(),
        };
        let wrapped = serde_json::json!({ "merged": merged });
        self.property(resource, &wrapped, "merged").map_err(|error| match error {
            TemplateError::Property { resource, source, .. } => {
                TemplateError::Property { resource, property: property.to_owned(), source }
            }
            TemplateError::NotUnderstood { resource, what, .. } => {
                TemplateError::NotUnderstood { resource, property: property.to_owned(), what }
            }
            other => other,
        })
    }
}
