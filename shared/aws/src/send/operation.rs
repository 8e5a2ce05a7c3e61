//! The operations that a table needs, each with the SDK's functions that write its request and read its answer.

use std::error::Error as StdError;
use std::fmt::{self, Debug};
use std::sync::LazyLock;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation as sdk;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{Input, OutputOrError};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_plugin::RuntimePlugin;
use aws_smithy_runtime_api::client::ser_de::{
    DeserializeResponse, SerializeRequest, SharedRequestSerializer, SharedResponseDeserializer,
};
use aws_smithy_types::config_bag::{ConfigBag, FrozenLayer};

/// The return type of the SDK's call of an operation.
pub(crate) type Answer<I> =
    Result<<I as Operation>::Output, SdkError<<I as Operation>::Error, HttpResponse>>;

/// An operation, named by its input.
pub(crate) trait Operation: Debug + Send + Sync + Sized + 'static {
    type Output: Debug + Send + Sync + 'static;
    type Error: StdError + ProvideErrorMetadata + Send + Sync + 'static;

    /// The SDK's functions for it.
    fn codec() -> &'static Codec;

    /// Deserialises a whole answer like the SDK.
    #[expect(clippy::result_large_err, reason = "it is what the SDK's own calls return")]
    fn answer(response: HttpResponse) -> Answer<Self> {
        let mut refused = None;
        let read = Self::codec().read(&response).map_err(|error| {
            error.map_operation_error(|error| {
                refused = Some(error);
                fmt::Error
            })
        });
        match (read, refused) {
            (Ok(output), _) => Ok(output.downcast().expect("the operation's own output")),
            (Err(_), Some(error)) => {
                let error = error.downcast().expect("the operation's own error");
                Err(SdkError::service_error(error, response))
            }
            (Err(unreadable), None) => Err(SdkError::response_error(unreadable, response)),
        }
    }
}

/// The configuration of an operation. It holds the SDK's functions that write its request and read its answer.
#[derive(Debug)]
pub(crate) struct Codec(FrozenLayer);

impl Codec {
    fn of(operation: &impl RuntimePlugin) -> Self {
        Self(operation.config().expect("an operation of the SDK has a configuration"))
    }

    /// The request of an input, without an address and unsigned.
    pub(super) fn request(&self, input: Input) -> Result<HttpRequest, BoxError> {
        let serializer = self.0.load::<SharedRequestSerializer>().expect("it writes requests");
        serializer.serialize_input(input, &mut ConfigBag::base())
    }

    fn read(&self, response: &HttpResponse) -> OutputOrError {
        let reads = self.0.load::<SharedResponseDeserializer>().expect("it reads answers");
        reads.deserialize_nonstreaming_with_config(response, &ConfigBag::base())
    }
}

macro_rules! operations {
    ($($module:ident: $name:ident $input:ident $output:ident $error:ident,)+) => {$(
        impl Operation for sdk::$module::$input {
            type Output = sdk::$module::$output;
            type Error = sdk::$module::$error;

            fn codec() -> &'static Codec {
                static CODEC: LazyLock<Codec> = LazyLock::new(|| Codec::of(&sdk::$module::$name::new()));
                &CODEC
            }
        }
    )+};
}

operations! {
    batch_get_item: BatchGetItem BatchGetItemInput BatchGetItemOutput BatchGetItemError,
    batch_write_item: BatchWriteItem BatchWriteItemInput BatchWriteItemOutput BatchWriteItemError,
    delete_item: DeleteItem DeleteItemInput DeleteItemOutput DeleteItemError,
    get_item: GetItem GetItemInput GetItemOutput GetItemError,
    put_item: PutItem PutItemInput PutItemOutput PutItemError,
    query: Query QueryInput QueryOutput QueryError,
    scan: Scan ScanInput ScanOutput ScanError,
    transact_get_items: TransactGetItems TransactGetItemsInput TransactGetItemsOutput TransactGetItemsError,
    transact_write_items: TransactWriteItems TransactWriteItemsInput TransactWriteItemsOutput TransactWriteItemsError,
    update_item: UpdateItem UpdateItemInput UpdateItemOutput UpdateItemError,
}
