//! A template as parsed, and as one stack sees it.

use std::{fs, path::Path};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    error::TemplateError,
    intrinsics::{Place, Resolver, long_form},
};

/// A parsed template.
pub struct Template {
    pub(super) document: Value,
    pub(super) rules_are_off: bool,
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
        Ok(Self { document: long_form(serde_yaml_ng::from_str(text)?)?, rules_are_off: false })
    }

    /// Switches off the rules of the buses and the schedules, so nothing acts on events.
    pub fn switch_rules_off(&mut self) {
        self.rules_are_off = true;
    }

    /// Sets a parameter to another value than the one for this machine: `NAME=VALUE`.
    ///
    /// # Errors
    /// The template has no parameter of this name, or the text gives it no value.
    pub fn set(&mut self, parameter: &str) -> Result<(), TemplateError> {
        let no_value = || TemplateError::NoValue { parameter: parameter.to_owned() };
        let (name, value) = parameter.split_once('=').ok_or_else(no_value)?;
        if self.document["Parameters"].get(name).is_none() {
            let known = self.document["Parameters"].as_object().into_iter().flatten();
            let known = known.map(|(name, _)| name.clone()).collect();
            return Err(TemplateError::NoParameter { name: name.to_owned(), known });
        }
        self.document["Metadata"]["Local"][name] = value.into();
        Ok(())
    }

    /// The template with each of its resources, also those whose conditions do not hold on this machine.
    #[must_use]
    pub fn whole(mut self) -> Self {
        let resources = self.document["Resources"].as_object_mut();
        for resource in resources.into_iter().flat_map(Map::values_mut) {
            if let Some(resource) = resource.as_object_mut() {
                resource.remove("Condition");
            }
        }
        self
    }

    /// The properties of the table of this logical id.
    ///
    /// # Errors
    /// There is no such table, or a property is not understood.
    pub fn table(&self, id: &str) -> Result<Value, TemplateError> {
        let view = View { resolver: Resolver { document: &self.document, queues: "" } };
        let tables = view.resources("AWS::DynamoDB::Table")?;
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
    /// The resources of one type, by logical id, without those whose condition does not hold.
    pub(super) fn resources(&self, kind: &str) -> Result<Vec<(&'a str, &'a Value)>, TemplateError> {
        let mut of_kind = Vec::new();
        for (id, body) in self.all(kind) {
            if self.is_there(id, body)? {
                of_kind.push((id, body));
            }
        }
        Ok(of_kind)
    }

    /// The resources of one type, by logical id, whether their conditions hold or not.
    pub(super) fn all(&self, kind: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let resources = self.resolver.document["Resources"].as_object().into_iter().flatten();
        let of_kind = resources.filter(move |(_, body)| body["Type"] == kind);
        of_kind.map(|(id, body)| (id.as_str(), body))
    }

    /// Whether the condition of a resource holds.
    pub(super) fn is_there(&self, id: &str, body: &Value) -> Result<bool, TemplateError> {
        let place = Place { resource: id, property: "Condition" };
        match body.get("Condition") {
            Some(name) => self.resolver.holds(place, &json!({ "Condition": name })),
            None => Ok(true),
        }
    }

    pub(super) fn local_name(&self, resource: &str) -> Result<String, TemplateError> {
        self.resolver.local_name(Place { resource, property: "name" }, resource)
    }

    /// The value at a path of a resource (`Properties.Environment.Environment`), resolved and parsed into `T`. A
    /// missing value counts as null, so an `Option` is `None`.
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

    /// A function's property, or that of `Globals.FunctionResource` if the function has none. Maps are merged.
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
        let wrapped = json!({ "merged": merged });
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
