//! An embedded DynamoDB with the tables of a template.

use aws_sdk_dynamodb::Client;
use ringfence::kit::{BEGIN_MS, fail};
use ringfence_dynamo::Clock;
use ringfence_dynamo::wire::Wire;
use ringfence_local::embedded::Embedded;
use ringfence_local::template::Template;

/// An empty DynamoDB in this process, and a recorder on the way to it. The name of a table is its logical id
/// in the template.
pub struct Dynamo {
    _embedded: Embedded,
    /// Records each request, and can make it fail.
    pub wire: Wire,
    /// Sends requests through the recorder.
    pub client: Client,
    /// A clock that stands still until it is set.
    pub clock: Clock,
}

impl Dynamo {
    /// A DynamoDB with the tables of these logical ids. Panics if the template lacks one of them.
    pub async fn with(template: &Template, tables: &[&str]) -> Self {
        let embedded = Embedded::start().await;
        let embedded = embedded.unwrap_or_else(|error| fail("the embedded DynamoDB", error));
        for table in tables {
            let properties =
                template.table(table).unwrap_or_else(|error| fail("the template", error));
            let created = embedded.create_table(&properties, table);
            created.unwrap_or_else(|error| fail(table, error));
        }
        let wire = Wire::default();
        let client = wire.client(embedded.endpoint());
        Self { _embedded: embedded, wire, client, clock: Clock::fixed(BEGIN_MS) }
    }
}
