//! The names of a project's parts: features, edges, files and releases.
//!
//! A reference names the whole path, so projects that share tables never meet: `shop/REQ-F-AUTH-001` is a
//! feature, `shop/REQ-F-AUTH-001/design_code` an edge of it. No name holds a `/`.

use std::{borrow::Cow, fmt, str::FromStr};

use ringfence::{Id, TagValue, id_type};
use sha2::{Digest, Sha256 as Hasher};

use crate::PRIMARY;

id_type!(ProjectId, "names a project");
id_type!(AgentId, "names an agent: a program or a person that works on a project");
id_type!(ClaimId, "names a claim; the claimer chooses it");
id_type!(RoleName, "names a role in a project");
id_type!(ReqKey, "names a requirement that work answers to");
id_type!(IntentId, "names something that is missing in a project");

impl Default for AgentId {
    /// The agent of a command without one: `primary`, of single mode.
    fn default() -> Self {
        PRIMARY.parse().expect("it is a name")
    }
}

impl AgentId {
    /// Whether it is the agent of projects in single mode.
    #[must_use]
    pub fn is_primary(&self) -> bool {
        self.0.as_str() == PRIMARY
    }
}

impl IntentId {
    /// A name and half of a hash, because an id has at most 64 characters.
    #[must_use]
    pub fn of(name: &str, hash: &Sha256) -> Self {
        format!("{name}-{}", &hash.to_string()[..32]).parse().expect("it is short and plain")
    }
}

/// Why a string is not a name, with an example of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {0}")]
pub struct NameError(&'static str);

/// A type that is written as one string: its `Display`, its `FromStr`, and a check of the string's parts.
macro_rules! text_type {
    ($name:ident, $what:literal) => {
        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::parse(text).ok_or(NameError($what))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.to_string()
            }
        }

        impl TagValue for $name {
            fn tag_value(&self) -> Cow<'_, str> {
                Cow::Owned(self.to_string())
            }
        }
    };
}

/// Part of a pattern: the name of a feature.
macro_rules! feature {
    () => {
        "REQ-[A-Z]+(-[A-Z0-9]+)+-[0-9]{3,}"
    };
}

/// Part of a pattern: the name of an edge, of whose arrows each is one character.
macro_rules! edge {
    () => {
        "([a-z0-9_]|<->|->|→|↔){1,64}"
    };
}

/// The name of a feature in its project: `REQ-F-AUTH-001`.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("maxLength" = 64, "pattern" = concat!("^", feature!(), "$")))]
pub struct FeatureId(Id);

text_type!(
    FeatureId,
    "the name of a feature: REQ, a word of A-Z, words of A-Z 0-9, and a number of at least three digits, \
     joined by -, at most 64 characters, such as REQ-F-AUTH-001"
);

impl FeatureId {
    fn parse(text: &str) -> Option<Self> {
        let is_word = |word: &str| {
            let is_char = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
            !word.is_empty() && word.chars().all(is_char)
        };
        let parts: Vec<&str> = text.split('-').collect();
        let [prefix, kind, words @ .., number] = &parts[..] else { return None };
        let is_valid = *prefix == "REQ"
            && !kind.is_empty()
            && kind.chars().all(|c| c.is_ascii_uppercase())
            && !words.is_empty()
            && words.iter().all(|word| is_word(word))
            && number.len() >= 3
            && number.chars().all(|c| c.is_ascii_digit());
        is_valid.then(|| Id::try_from(text.to_owned()).ok().map(Self)).flatten()
    }
}

impl fmt::Display for FeatureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// The name of an edge in the graph of a project: `design_code`. An arrow (`design→code`) is written `_`.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = concat!("^", edge!(), "$")))]
pub struct EdgeName(Id);

text_type!(EdgeName, "the name of an edge: 1 to 64 characters of a-z 0-9 _, such as design_code");

impl EdgeName {
    fn parse(text: &str) -> Option<Self> {
        // The longest arrow first.
        let name = ["<->", "->", "→", "↔"]
            .iter()
            .fold(text.to_owned(), |name, arrow| name.replace(arrow, "_"));
        let is_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        name.chars().all(is_char).then(|| Id::try_from(name).ok().map(Self)).flatten()
    }
}

impl fmt::Display for EdgeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// A feature of a project: `shop/REQ-F-AUTH-001`.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = concat!("^[A-Za-z0-9._-]{1,64}/", feature!(), "$")))]
pub struct FeatureRef {
    pub project: ProjectId,
    pub feature: FeatureId,
}

text_type!(
    FeatureRef,
    "a feature of a project: <project>/<feature>, each with at most 64 characters, the feature as REQ, a word of A-Z, \
     words of A-Z 0-9 and a number of at least three digits, joined by -, such as shop/REQ-F-AUTH-001"
);

impl FeatureRef {
    fn parse(text: &str) -> Option<Self> {
        let (project, feature) = text.split_once('/')?;
        Some(Self { project: project.parse().ok()?, feature: feature.parse().ok()? })
    }

    /// The edge of the feature with this name.
    #[must_use]
    pub fn edge(&self, name: &EdgeName) -> EdgeRef {
        EdgeRef { feature: self.clone(), name: name.clone() }
    }
}

impl fmt::Display for FeatureRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.project, self.feature)
    }
}

/// An edge of a feature, which is what agents claim: `shop/REQ-F-AUTH-001/design_code`.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend(
    "pattern" = concat!("^[A-Za-z0-9._-]{1,64}/", feature!(), "/", edge!(), "$")
))]
pub struct EdgeRef {
    pub feature: FeatureRef,
    pub name: EdgeName,
}

text_type!(
    EdgeRef,
    "an edge of a feature: <project>/<feature>/<edge>, each with at most 64 characters, the feature as REQ, a word of \
     A-Z, words of A-Z 0-9 and a number of at least three digits, joined by -, and the edge of a-z 0-9 _, such as \
     shop/REQ-F-AUTH-001/design_code"
);

impl EdgeRef {
    fn parse(text: &str) -> Option<Self> {
        let (feature, name) = text.rsplit_once('/')?;
        Some(Self { feature: feature.parse().ok()?, name: name.parse().ok()? })
    }
}

impl fmt::Display for EdgeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.feature, self.name)
    }
}

/// The SHA-256 of a file, as 64 hexadecimal digits in lower case.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^[0-9a-f]{64}$"))]
pub struct Sha256(Id);

text_type!(Sha256, "a SHA-256: 64 hexadecimal digits in lower case");

impl Sha256 {
    fn parse(text: &str) -> Option<Self> {
        let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
        let is_valid = text.len() == 64 && text.chars().all(is_digit);
        is_valid.then(|| Id::try_from(text.to_owned()).ok().map(Self)).flatten()
    }

    /// The hash of a string.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let hash = Hasher::digest(text);
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::parse(&digits).expect("64 hexadecimal digits")
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// The version of a release: <https://semver.org>, such as `1.4.0` or `2.0.0-rc.1`.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend(
    "maxLength" = 64,
    "pattern" = r"^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-[0-9A-Za-z.-]+)?$"
))]
pub struct Version(semver::Version);

text_type!(
    Version,
    "a version of at most 64 characters: three numbers and, if wanted, a pre-release, such as 1.4.0 or 2.0.0-rc.1"
);

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let version = (text.len() <= 64).then(|| semver::Version::parse(text).ok()).flatten()?;
        // Two versions that differ in build metadata alone would be one version with two names.
        version.build.is_empty().then_some(Self(version))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use regex_lite::Regex;
    use schemars::{JsonSchema, schema_for};
    use serde_json::Value;

    use super::*;

    /// The type and its schema take the text, or neither does.
    fn is<T: FromStr + JsonSchema>(text: &str, valid: bool) {
        assert_eq!(text.parse::<T>().is_ok(), valid, "{text:?}");
        let schema = schema_for!(T);
        let pattern = schema.get("pattern").and_then(Value::as_str).expect("a pattern");
        let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let is_admitted = Regex::new(pattern).expect("a pattern").is_match(text);
        assert_eq!(is_admitted && text.len() as u64 <= most, valid, "{text:?}");
    }

    #[test]
    fn a_feature_is_named_by_a_kind_words_and_a_number() {
        for valid in ["REQ-F-AUTH-001", "REQ-NFR-A1-B2-1000", "REQ-F-0-000"] {
            is::<FeatureId>(valid, true);
        }
        for wrong in [
            "",
            "REQ",
            "REQ-F-001",
            "REQ-F-AUTH-01",
            "REQ-F-AUTH-0x1",
            "req-f-auth-001",
            "REQ-1-AUTH-001",
            "REQ-F--001",
            "REQ-F-AUTH#-001",
            "REQ-F-AUTH-001 ",
            "REQ--AUTH-001",
        ] {
            is::<FeatureId>(wrong, false);
        }
        is::<FeatureId>(&format!("REQ-F-{}-001", "A".repeat(60)), false);
    }

    #[test]
    fn the_arrows_of_an_edge_are_written_as_underscores() {
        for arrow in ["design→code", "design->code", "design↔code", "design<->code", "design_code"]
        {
            assert_eq!(arrow.parse::<EdgeName>().map(String::from).as_deref(), Ok("design_code"));
        }
        for wrong in ["", "Design_code", "design code", "design-code", "a/b", "é"] {
            is::<EdgeName>(wrong, false);
        }
        is::<EdgeName>(&"x".repeat(65), false);
    }

    #[test]
    fn a_reference_names_the_whole_path() {
        let edge: EdgeRef = "shop/REQ-F-AUTH-001/design→code".parse().expect("an edge");
        assert_eq!(edge.to_string(), "shop/REQ-F-AUTH-001/design_code");
        assert_eq!(edge.feature.to_string(), "shop/REQ-F-AUTH-001");
        for wrong in
            ["shop", "shop/REQ-F-AUTH-001", "/REQ-F-AUTH-001/a", "s/REQ-F-AUTH-001/a/b", "a/b/c"]
        {
            is::<EdgeRef>(wrong, false);
        }
        let error = "shop".parse::<FeatureRef>().unwrap_err().to_string();
        let expected = "must be a feature of a project: <project>/<feature>, each with at most 64 \
                        characters, the feature as REQ, a word of A-Z, words of A-Z 0-9 and a \
                        number of at least three digits, joined by -, such as shop/REQ-F-AUTH-001";
        assert_eq!(error, expected);
    }

    #[test]
    fn hashes_and_versions_have_one_spelling() {
        is::<Sha256>(&"0a".repeat(32), true);
        is::<Sha256>(&"0A".repeat(32), false);
        is::<Sha256>("0a", false);
        is::<Version>("1.4.0-rc.1", true);
        is::<Version>("1.4.0+build", false);
        is::<Version>("1.4", false);
    }
}
