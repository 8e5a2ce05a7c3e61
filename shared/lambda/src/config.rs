//! Configuration from the environment, complete or refused as a whole.

use std::{collections::BTreeSet, fmt::Display, str::FromStr};

/// Everything that is wrong with the environment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the template must set {}", .0.iter().cloned().collect::<Vec<_>>().join(", "))]
pub struct ConfigError(BTreeSet<String>);

/// Reads variables and remembers what is missing, so that one error names them all.
pub struct Variables {
    read: fn(&str) -> Option<String>,
    wrong: BTreeSet<String>,
}

impl Variables {
    /// The variables of this process.
    pub fn from_env() -> Self {
        Self::new(|name| {
            #[expect(clippy::disallowed_methods, reason = "the one place that reads variables")]
            std::env::var(name).ok()
        })
    }

    fn new(read: fn(&str) -> Option<String>) -> Self {
        Self { read, wrong: BTreeSet::new() }
    }

    /// A variable that must be there and not be empty.
    pub fn required(&mut self, name: &str) -> String {
        let value = (self.read)(name).unwrap_or_default();
        if value.is_empty() {
            self.wrong.insert(name.to_owned());
        }
        value
    }

    /// A variable that may be absent, but not be something else.
    pub fn optional<T: FromStr<Err: Display>>(&mut self, name: &str, default: T) -> T {
        match (self.read)(name) {
            None => default,
            Some(value) => value.parse().unwrap_or_else(|error| {
                self.wrong.insert(format!("{name} ({value:?}: {error})"));
                default
            }),
        }
    }

    /// `config`, unless something was wrong.
    pub fn finish<C>(self, config: C) -> Result<C, ConfigError> {
        if self.wrong.is_empty() { Ok(config) } else { Err(ConfigError(self.wrong)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_error_names_everything() {
        let mut variables = Variables::new(|name| (name == "COUNT").then(|| "many".to_owned()));
        variables.required("TABLE");
        variables.required("BUS");
        variables.optional("COUNT", 1_u32);
        let error = variables.finish(()).unwrap_err().to_string();
        assert_eq!(
            error,
            r#"the template must set BUS, COUNT ("many": invalid digit found in string), TABLE"#
        );
    }

    #[test]
    fn defaults_hold_where_nothing_is_set() {
        let mut variables = Variables::new(|_| None);
        let count = variables.optional("COUNT", 7);
        assert_eq!(variables.finish(count), Ok(7));
    }
}
