//! Configuration from the environment, complete or refused as a whole.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    str::FromStr,
};

use ringfence_core::LogKind;
use ringfence_log::Sources;

/// All faults of the environment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the template must set {}", .0.iter().cloned().collect::<Vec<_>>().join(", "))]
pub struct ConfigError(BTreeSet<String>);

/// The names of the variables that a function reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariableNames {
    /// It does not start without these.
    pub required: BTreeSet<String>,
    /// These have defaults.
    pub optional: BTreeSet<String>,
}

/// Reads variables and remembers the missing ones, so one error names them all.
pub struct Variables {
    read: fn(&str) -> Option<String>,
    names: VariableNames,
    wrong: BTreeSet<String>,
}

impl Variables {
    /// The configuration that `config` makes from the variables of this process.
    ///
    /// # Errors
    /// Variables are missing or can't be read. The error names each.
    pub fn from_env<C>(config: impl FnOnce(&mut Self) -> C) -> Result<C, ConfigError> {
        let read = |name: &str| {
            #[expect(clippy::disallowed_methods, reason = "the one place that reads variables")]
            std::env::var(name).ok()
        };
        Self::read(read, config)
    }

    /// The variables that `config` reads.
    pub fn names<C>(config: impl FnOnce(&mut Self) -> C) -> VariableNames {
        let mut variables = Self::new(|_| None);
        config(&mut variables);
        variables.names
    }

    fn new(read: fn(&str) -> Option<String>) -> Self {
        Self { read, names: VariableNames::default(), wrong: BTreeSet::new() }
    }

    fn read<C>(
        read: fn(&str) -> Option<String>,
        config: impl FnOnce(&mut Self) -> C,
    ) -> Result<C, ConfigError> {
        let mut variables = Self::new(read);
        let config = config(&mut variables);
        if variables.wrong.is_empty() { Ok(config) } else { Err(ConfigError(variables.wrong)) }
    }

    /// A variable that must be set and not be empty.
    pub fn required(&mut self, name: &str) -> String {
        self.names.required.insert(name.to_owned());
        let value = (self.read)(name).unwrap_or_default();
        if value.is_empty() {
            self.wrong.insert(name.to_owned());
        }
        value
    }

    /// The tables of these logs.
    pub fn tables(&mut self, sources: &Sources) -> BTreeMap<LogKind, String> {
        let facts = sources.iter().map(|source| source.facts());
        facts.map(|facts| (facts.kind, self.required(facts.variable))).collect()
    }

    /// A variable that may be absent, but must have the right form.
    pub fn optional<T: FromStr<Err: Display>>(&mut self, name: &str, default: T) -> T {
        self.names.optional.insert(name.to_owned());
        match (self.read)(name) {
            None => default,
            Some(value) => value.parse().unwrap_or_else(|error| {
                self.wrong.insert(format!("{name} ({value:?}: {error})"));
                default
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(variables: &mut Variables) -> (String, String, u32) {
        let (table, bus) = (variables.required("TABLE"), variables.required("BUS"));
        (table, bus, variables.optional("COUNT", 1))
    }

    #[test]
    fn one_error_names_every_variable_that_is_missing_or_wrong() {
        let read = |name: &str| (name == "COUNT").then(|| "many".to_owned());
        let error = Variables::read(read, config).unwrap_err().to_string();
        assert_eq!(
            error,
            r#"the template must set BUS, COUNT ("many": invalid digit found in string), TABLE"#
        );
    }

    #[test]
    fn a_variable_that_is_not_set_has_its_default() {
        let count = Variables::read(|_| None, |variables| variables.optional("COUNT", 7));
        assert_eq!(count, Ok(7));
    }

    #[test]
    fn the_names_are_those_that_the_configuration_reads() {
        let VariableNames { required, optional } = Variables::names(config);
        assert_eq!(required, ["BUS", "TABLE"].map(str::to_owned).into());
        assert_eq!(optional, ["COUNT"].map(str::to_owned).into());
    }
}
