//! Compares an existing table with the layout that its log needs.
//!
//! A table may have more: other indexes, an index with more attributes, a stream that also shows old images. Its origin
//! does not matter: a table of Castore, of Equinox or of a restore fits if it lacks nothing.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{TableDescription, TimeToLiveDescription, TimeToLiveStatus};
use ringfence_aws::{IndexLayout, TableLayout};
use serde_json::{Value, json};

/// A thing that a table lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableDefect {
    /// It has other keys.
    #[error("its keys are {found}, and {needed} are needed")]
    Keys {
        /// As they are: names and types.
        found: String,
        /// As they have to be.
        needed: String,
    },
    /// It has the keys of an aggregate log, and lists the first events as Castore's older layout does.
    #[error(
        "it is of Castore's older layout, which has one event store a table and which functions can't use"
    )]
    OlderLayout,
    /// It has no stream.
    #[error("it has no stream, and one with {needed} is needed")]
    NoStream {
        /// What the stream must show.
        needed: String,
    },
    /// Its stream does not show the needed images.
    #[error("its stream shows {found}, and {needed} is needed")]
    Stream {
        /// What it shows.
        found: String,
        /// What it must show.
        needed: String,
    },
    /// It lacks an index.
    #[error("it lacks the index {}", index["IndexName"].as_str().unwrap_or_default())]
    NoIndex {
        /// The index, as CreateTable takes it.
        index: Value,
        /// Its key attributes, as UpdateTable takes them.
        attributes: Value,
    },
    /// An index has other keys.
    #[error("the keys of its index {name} are {found}, and {needed} are needed")]
    IndexKeys {
        /// The index.
        name: String,
        /// As they are.
        found: String,
        /// As they have to be.
        needed: String,
    },
    /// An index is being made or deleted.
    #[error("its index {name} is {status}, and queries need an ACTIVE one")]
    IndexNotReady {
        /// The index.
        name: String,
        /// Its status.
        status: String,
    },
    /// An index lacks attributes.
    #[error("its index {name} lacks {}", attributes.join(", "))]
    IndexAttributes {
        /// The index.
        name: String,
        /// The attributes.
        attributes: Vec<&'static str>,
    },
    /// Items do not expire.
    #[error("its items do not expire at {attribute}")]
    NotExpiring {
        /// The attribute with the time.
        attribute: &'static str,
    },
}

impl TableDefect {
    /// The steps to mend a table of this name. Each is a command of the AWS CLI or a sentence.
    #[must_use]
    pub fn mend(&self, table: &str) -> Vec<String> {
        let update = format!("aws dynamodb update-table --table-name {table}");
        let stream = |view: &str| {
            format!("{update} --stream-specification StreamEnabled=true,StreamViewType={view}")
        };
        let again = |name: &str| {
            let delete = json!([{ "Delete": { "IndexName": name } }]);
            let wait = "When the index is gone, check again for the command that makes it as it has to be.";
            vec![format!("{update} --global-secondary-index-updates '{delete}'"), wait.to_owned()]
        };
        match self {
            Self::Keys { .. } => vec![
                "The keys of a table never change: name another table, or leave the name out, and the stack makes one."
                    .to_owned(),
            ],
            Self::OlderLayout => vec![
                format!("ringfence import --from castore-legacy {table} --context STORE"),
                "It copies the events into another table; STORE is the context.".to_owned(),
            ],
            Self::NoStream { needed } => vec![stream(needed)],
            Self::Stream { needed, .. } => vec![
                format!("{update} --stream-specification StreamEnabled=false"),
                "When that is done:".to_owned(),
                stream(needed),
                "What is written in between is in no stream: `ringfence index repair` indexes it."
                    .to_owned(),
            ],
            Self::NoIndex { index, attributes } => {
                let create = json!([{ "Create": index }]);
                let create = format!("--global-secondary-index-updates '{create}'");
                vec![format!("{update} --attribute-definitions '{attributes}' {create}")]
            }
            Self::IndexKeys { name, .. } | Self::IndexAttributes { name, .. } => again(name),
            Self::IndexNotReady { .. } => {
                vec!["Wait until DynamoDB is done with it, then check again.".to_owned()]
            }
            Self::NotExpiring { attribute } => vec![format!(
                "aws dynamodb update-time-to-live --table-name {table} --time-to-live-specification \
                 Enabled=true,AttributeName={attribute}"
            )],
        }
    }
}

/// The things of a layout that a table lacks. `found` has the table's properties as a template has them.
#[must_use]
pub fn compare(layout: &TableLayout, found: &Value) -> Vec<TableDefect> {
    let needed = layout.properties();
    let mut defects = Vec::new();
    let [keys, keys_needed] = [found, &needed].map(|table| keys_of(table, None));
    if keys != keys_needed {
        // With other keys, nothing else matters.
        return vec![TableDefect::Keys { found: keys, needed: keys_needed }];
    }
    let is_older = |table: &Value| {
        let keys = of_name(table, "initialEvents")["KeySchema"].as_array();
        keys.is_some_and(|keys| keys.iter().any(|key| key["AttributeName"] == "isInitialEvent"))
    };
    if is_older(found) && !is_older(&needed) {
        return vec![TableDefect::OlderLayout];
    }
    defects.extend(stream_defect(&needed, found));
    let indexes = indexes(found);
    for index in &layout.indexes {
        match indexes.get(&*index.name) {
            None => {
                let is_key = |one: &&Value| {
                    index.keys.iter().any(|(name, _)| one["AttributeName"] == **name)
                };
                let attributes = needed["AttributeDefinitions"].as_array().into_iter().flatten();
                let attributes = attributes.filter(is_key).cloned().collect();
                let index = of_name(&needed, &index.name).clone();
                defects.push(TableDefect::NoIndex { index, attributes });
            }
            Some(there) => defects.extend(index_defect(index, &needed, found, there)),
        }
    }
    let expires = &found["TimeToLiveSpecification"];
    if let Some(attribute) = layout.expires_at
        && (expires["AttributeName"] != attribute || expires["Enabled"] != true)
    {
        defects.push(TableDefect::NotExpiring { attribute });
    }
    defects
}

fn stream_defect(needed: &Value, found: &Value) -> Option<TableDefect> {
    let view = |table: &Value| {
        Some(table.pointer("/StreamSpecification/StreamViewType")?.as_str()?.to_owned())
    };
    let needed = view(needed)?;
    let Some(found) = view(found) else { return Some(TableDefect::NoStream { needed }) };
    // Readers ignore everything else that a stream shows.
    let shows = match &*needed {
        "KEYS_ONLY" => true,
        "NEW_IMAGE" => ["NEW_IMAGE", "NEW_AND_OLD_IMAGES"].contains(&&*found),
        _ => found == needed,
    };
    (!shows).then_some(TableDefect::Stream { found, needed })
}

/// `there` is the existing index.
fn index_defect(
    index: &IndexLayout,
    needed: &Value,
    found: &Value,
    there: &Value,
) -> Option<TableDefect> {
    let [keys, keys_needed] = [found, needed].map(|table| keys_of(table, Some(&index.name)));
    let name = index.name.clone();
    if keys != keys_needed {
        return Some(TableDefect::IndexKeys { name, found: keys, needed: keys_needed });
    }
    let status = there["IndexStatus"].as_str().unwrap_or_default();
    if ["CREATING", "DELETING"].contains(&status) {
        return Some(TableDefect::IndexNotReady { name, status: status.to_owned() });
    }
    let projection = &there["Projection"];
    if projection["ProjectionType"] == "ALL" {
        return None;
    }
    let named = projection["NonKeyAttributes"].as_array().cloned().unwrap_or_default();
    let lacking = index.attributes.iter().copied().filter(|name| named.iter().all(|it| it != name));
    let attributes: Vec<_> = lacking.collect();
    (!attributes.is_empty()).then_some(TableDefect::IndexAttributes { name, attributes })
}

/// The indexes of a table, by their names.
pub(crate) fn indexes(table: &Value) -> BTreeMap<&str, &Value> {
    let indexes = table["GlobalSecondaryIndexes"].as_array().into_iter().flatten();
    indexes.filter_map(|index| Some((index["IndexName"].as_str()?, index))).collect()
}

fn of_name<'v>(table: &'v Value, name: &str) -> &'v Value {
    indexes(table).remove(name).unwrap_or(&Value::Null)
}

/// The keys of a table, or of its index of this name, with their types: `id (S), position (N)`. Empty if there is no
/// such index. `table` has the table's properties as a template has them.
#[must_use]
pub fn keys_of(table: &Value, index: Option<&str>) -> String {
    let of = index.map_or(table, |name| of_name(table, name));
    let types = table["AttributeDefinitions"].as_array().into_iter().flatten();
    let types: BTreeMap<_, _> = types
        .filter_map(|it| Some((it["AttributeName"].as_str()?, it["AttributeType"].as_str()?)))
        .collect();
    let key = |kind: &str| {
        let mut keys = of["KeySchema"].as_array().into_iter().flatten();
        let name = keys.find(|key| key["KeyType"] == kind)?["AttributeName"].as_str()?;
        Some(format!("{name} ({})", types.get(name).unwrap_or(&"?")))
    };
    ["HASH", "RANGE"].into_iter().filter_map(key).collect::<Vec<_>>().join(", ")
}

/// The properties of a table that DynamoDB describes, as a template has them.
#[must_use]
pub fn properties_of(table: &TableDescription, expiry: Option<&TimeToLiveDescription>) -> Value {
    let definitions = table.attribute_definitions().iter().map(|it| {
        json!({ "AttributeName": it.attribute_name(), "AttributeType": it.attribute_type().as_str() })
    });
    let schema = |keys: &[aws_sdk_dynamodb::types::KeySchemaElement]| -> Value {
        let key = |it: &aws_sdk_dynamodb::types::KeySchemaElement| json!({ "AttributeName": it.attribute_name(), "KeyType": it.key_type().as_str() });
        keys.iter().map(key).collect()
    };
    let indexes = table.global_secondary_indexes().iter().map(|it| {
        let projection = it.projection();
        json!({
            "IndexName": it.index_name(),
            "IndexStatus": it.index_status().map(|of| of.as_str()),
            "KeySchema": schema(it.key_schema()),
            "Projection": {
                "ProjectionType": projection.and_then(|of| of.projection_type()).map(|of| of.as_str()),
                "NonKeyAttributes": projection.map(|of| of.non_key_attributes()).unwrap_or_default(),
            },
        })
    });
    let stream = table.stream_specification().filter(|stream| stream.stream_enabled());
    let view = stream.and_then(|stream| stream.stream_view_type()).map(|view| view.as_str());
    let is_on = |of: &&TimeToLiveDescription| {
        let status = of.time_to_live_status();
        matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling))
    };
    let expires = expiry.filter(is_on).and_then(TimeToLiveDescription::attribute_name);
    let mut properties = json!({
        "AttributeDefinitions": definitions.collect::<Value>(),
        "KeySchema": schema(table.key_schema()),
        "GlobalSecondaryIndexes": indexes.collect::<Value>(),
    });
    if let Some(view) = view {
        properties["StreamSpecification"] = json!({ "StreamViewType": view });
    }
    if let Some(attribute) = expires {
        properties["TimeToLiveSpecification"] =
            json!({ "AttributeName": attribute, "Enabled": true });
    }
    properties
}

#[cfg(test)]
mod tests {
    use ringfence_aws::{number_key, text_key};

    use super::*;

    fn layout() -> TableLayout {
        ringfence_dcb_log::table_layout(&crate::document::tests::catalog())
    }

    #[test]
    fn a_table_with_more_than_is_needed_lacks_nothing() {
        let mut found = layout().properties();
        assert_eq!(compare(&layout(), &found), []);
        found["GlobalSecondaryIndexes"][0]["Projection"] = json!({ "ProjectionType": "ALL" });
        found["StreamSpecification"]["StreamViewType"] = json!("NEW_AND_OLD_IMAGES");
        let other = json!({ "IndexName": "other", "KeySchema": [], "Projection": {} });
        found["GlobalSecondaryIndexes"].as_array_mut().expect("a list").push(other);
        assert_eq!(compare(&layout(), &found), []);
    }

    #[test]
    fn each_thing_that_a_table_lacks_is_named_with_its_mend() {
        let index = layout().indexes[0].name.clone();
        let check = |change: fn(&mut Value), said: &str, mend: &str| {
            let mut found = layout().properties();
            change(&mut found);
            let defects = compare(&layout(), &found);
            assert_eq!(defects.len(), 1, "{defects:?}");
            assert_eq!(defects[0].to_string(), said);
            let steps = defects[0].mend("t");
            assert!(steps[0].starts_with(mend), "{said}: {steps:?}");
            // People copy a command, so it is alone in its line.
            let is_command = |step: &&String| step.starts_with("aws ");
            assert!(steps.iter().filter(is_command).all(|step| !step.ends_with(['.', ',', ':'])));
            steps.len()
        };
        let update = "aws dynamodb update-table --table-name t --";
        let delete = format!("{update}global-secondary-index-updates '[{{\"Delete\":");
        check(
            |found| found["AttributeDefinitions"] = json!([]),
            "its keys are id (?), position (?), and id (S), position (N) are needed",
            "The keys of a table never change: name another table",
        );
        check(
            |found| found["StreamSpecification"] = Value::Null,
            "it has no stream, and one with NEW_IMAGE is needed",
            &format!("{update}stream-specification StreamEnabled=true,StreamViewType=NEW_IMAGE"),
        );
        let steps = check(
            |found| found["StreamSpecification"]["StreamViewType"] = json!("KEYS_ONLY"),
            "its stream shows KEYS_ONLY, and NEW_IMAGE is needed",
            &format!("{update}stream-specification StreamEnabled=false"),
        );
        assert_eq!(steps, 4, "off, when, on, what is lost");
        check(
            |found| found["GlobalSecondaryIndexes"] = json!([]),
            &format!("it lacks the index {index}"),
            &format!("{update}attribute-definitions '[{{\"AttributeName\":\"at\""),
        );
        check(
            |found| found["GlobalSecondaryIndexes"][0]["KeySchema"] = json!([]),
            &format!("the keys of its index {index} are , and {index} (S), at (N) are needed"),
            &delete,
        );
        check(
            |found| found["GlobalSecondaryIndexes"][0]["IndexStatus"] = json!("CREATING"),
            &format!("its index {index} is CREATING, and queries need an ACTIVE one"),
            "Wait until DynamoDB is done with it, then check again",
        );
        check(
            |found| {
                let projection = &mut found["GlobalSecondaryIndexes"][0]["Projection"];
                projection["NonKeyAttributes"] = json!(["data"]);
            },
            &format!("its index {index} lacks event, tags"),
            &delete,
        );
        check(
            |found| found["TimeToLiveSpecification"]["Enabled"] = json!(false),
            "its items do not expire at expiresAt",
            "aws dynamodb update-time-to-live --table-name t --",
        );
    }

    #[test]
    fn a_stream_of_a_table_that_only_notifies_may_show_anything() {
        let layout = TableLayout {
            keys: vec![text_key("p"), number_key("i")],
            indexes: Vec::new(),
            stream: Some(aws_sdk_dynamodb::types::StreamViewType::KeysOnly),
            expires_at: None,
        };
        let mut found = layout.properties();
        found["StreamSpecification"]["StreamViewType"] = json!("OLD_IMAGE");
        assert_eq!(compare(&layout, &found), []);
    }
}
