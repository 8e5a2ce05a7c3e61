//! Only this module classifies the SDK's errors: by what is known about the request's effect, which decides what may be
//! done next.

use std::error::Error as StdError;

use aws_sdk_dynamodb::Error as AwsError;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::CancellationReason;
use aws_smithy_runtime_api::client::endpoint::error::ResolveEndpointError;

use crate::Item;

/// The SDK's error.
pub(crate) type Source = Box<dyn StdError + Send + Sync>;

/// Why a request to DynamoDB failed, by what is known about its effect.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The transaction was cancelled and changed nothing. There is one reason for each of its actions, in their order.
    #[error("the transaction was cancelled")]
    Cancelled(Vec<Reason>),
    /// The condition of a single write did not hold; nothing changed.
    #[error("the condition does not hold")]
    Condition(Option<Item>),
    /// Throttled: nothing changed, and the same request may be sent again.
    #[error("the request was throttled")]
    Throttled {
        /// The SDK's error.
        source: Source,
    },
    /// Another transaction held the item: nothing changed, and the request may be sent again.
    #[error("another transaction holds the item")]
    Contended {
        /// The SDK's error.
        source: Source,
    },
    /// The request may have taken effect: only the identical request may be sent again.
    #[error("the outcome of the request is unknown")]
    Unknown {
        /// The SDK's error.
        source: Source,
    },
    /// The request failed for now, and the client's tokens for retries are used up. Only [`crate::Table`] makes it, and
    /// [`crate::Retry`] takes the failure out again.
    #[error("the tokens for retries are used up")]
    Last(#[source] Box<Self>),
    /// The request, the permissions or the table are wrong, so sending it again can't help.
    #[error("the request was refused")]
    Permanent {
        /// The SDK's error.
        source: Source,
    },
}

/// The reason of one action for the cancellation of its transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// This action could have been carried out.
    None,
    /// Its condition did not hold. It has the item, if there was one.
    Condition(Option<Item>),
    /// Another request held the item.
    Conflict,
    /// The table or the item was throttled.
    Throttled,
    /// The action can never succeed.
    Refused {
        /// The code, such as `ValidationError`.
        code: String,
        /// DynamoDB's message.
        message: String,
    },
}

impl Failure {
    /// Whether the identical request may succeed when it is sent again.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Throttled { .. }
            | Self::Contended { .. }
            | Self::Unknown { .. }
            | Self::Last(_) => true,
            Self::Cancelled(reasons) => {
                let conditions = reasons.iter().any(|r| matches!(r, Reason::Condition(_)));
                let transient =
                    reasons.iter().any(|r| matches!(r, Reason::Conflict | Reason::Throttled));
                transient && !conditions
            }
            Self::Condition(_) | Self::Permanent { .. } => false,
        }
    }

    /// Whether the only obstacle was another request on the same items.
    #[must_use]
    pub fn is_contention(&self) -> bool {
        match self {
            Self::Contended { .. } => true,
            Self::Cancelled(reasons) => {
                reasons.iter().any(|reason| matches!(reason, Reason::Conflict))
                    && reasons.iter().all(|r| matches!(r, Reason::None | Reason::Conflict))
            }
            _ => false,
        }
    }

    /// Whether the request is refused for its content, so a smaller one may succeed. False for a missing permission or
    /// table, which stops every request.
    #[must_use]
    pub fn is_of_content(&self) -> bool {
        match self {
            Self::Cancelled(reasons) => {
                reasons.iter().any(|reason| matches!(reason, Reason::Refused { .. }))
            }
            Self::Permanent { source } => source
                .downcast_ref::<AwsError>()
                .is_some_and(|error| error.code() == Some("ValidationException")),
            _ => false,
        }
    }
}

/// An answer without an error code of DynamoDB, such as the page of a proxy.
#[derive(Debug, thiserror::Error)]
#[error("the answer, of HTTP status {status}, can't be read, or has no error code")]
struct Unreadable {
    status: u16,
    source: AwsError,
}

impl Reason {
    fn of(reason: CancellationReason) -> Self {
        match reason.code.as_deref() {
            None | Some("None") => Self::None,
            Some("ConditionalCheckFailed") => Self::Condition(reason.item),
            Some("TransactionConflict") => Self::Conflict,
            Some("ThrottlingError" | "ProvisionedThroughputExceeded") => Self::Throttled,
            Some(code) => {
                Self::Refused { code: code.to_owned(), message: reason.message.unwrap_or_default() }
            }
        }
    }
}

/// Codes that DynamoDB may send with any operation, whether its model lists them or not.
fn by_code(code: Option<&str>, status: u16, source: Source) -> Failure {
    match (code, status) {
        (
            Some(
                "ThrottlingException"
                | "Throttling"
                | "ProvisionedThroughputExceededException"
                | "RequestLimitExceeded",
            ),
            _,
        ) => Failure::Throttled { source },
        (Some("TransactionConflictException" | "ReplicatedWriteConflictException"), _) => {
            Failure::Contended { source }
        }
        (
            Some("TransactionInProgressException" | "InternalServerError" | "ServiceUnavailable"),
            _,
        )
        // A success that can't be read took effect.
        | (_, 200..300 | 500..) => Failure::Unknown { source },
        _ => Failure::Permanent { source },
    }
}

impl<E> From<SdkError<E>> for Failure
where
    E: StdError + Into<AwsError> + Send + Sync + 'static,
{
    fn from(error: SdkError<E>) -> Self {
        match error {
            SdkError::TimeoutError(_) | SdkError::ResponseError(_) => {
                Self::Unknown { source: error.into() }
            }
            // Nothing was sent: the Region is missing, or the endpoint is not a URL.
            SdkError::DispatchFailure(ref failure)
                if failure.is_user()
                    || failure
                        .as_connector_error()
                        .and_then(StdError::source)
                        .is_some_and(|cause| cause.is::<ResolveEndpointError>()) =>
            {
                Self::Permanent { source: error.into() }
            }
            SdkError::DispatchFailure(_) => Self::Unknown { source: error.into() },
            SdkError::ServiceError(service) => {
                let status = service.raw().status().as_u16();
                match service.into_err().into() {
                    AwsError::TransactionCanceledException(cancelled) => {
                        let reasons = cancelled.cancellation_reasons.unwrap_or_default();
                        Self::Cancelled(reasons.into_iter().map(Reason::of).collect())
                    }
                    AwsError::ConditionalCheckFailedException(failed) => {
                        Self::Condition(failed.item)
                    }
                    other => match other.code().map(str::to_owned) {
                        Some(code) => by_code(Some(&code), status, other.into()),
                        None => by_code(None, status, Unreadable { status, source: other }.into()),
                    },
                }
            }
            _ => Self::Permanent { source: error.into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::error::{ConnectorError, ErrorMetadata};
    use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
    use aws_sdk_dynamodb::types::AttributeValue;
    use aws_sdk_dynamodb::types::error::TransactionCanceledException;
    use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
    use aws_smithy_runtime_api::http::StatusCode;
    use aws_smithy_types::body::SdkBody;

    use super::*;

    type Sdk = SdkError<TransactWriteItemsError>;

    fn answer(status: u16) -> HttpResponse {
        HttpResponse::new(StatusCode::try_from(status).expect("a status"), SdkBody::empty())
    }

    fn coded(status: u16, code: &str) -> Failure {
        let metadata = ErrorMetadata::builder().code(code).build();
        Sdk::service_error(TransactWriteItemsError::generic(metadata), answer(status)).into()
    }

    fn class(failure: &Failure) -> &'static str {
        match failure {
            Failure::Cancelled(_) => "cancelled",
            Failure::Condition(_) => "condition",
            Failure::Throttled { .. } => "throttled",
            Failure::Contended { .. } => "contended",
            Failure::Unknown { .. } => "unknown",
            Failure::Last(_) => "last",
            Failure::Permanent { .. } => "permanent",
        }
    }

    #[test]
    fn a_request_error_is_classified_by_its_code_and_status() {
        for (status, code, expected) in [
            (400, "ThrottlingException", "throttled"),
            (400, "Throttling", "throttled"),
            (400, "ProvisionedThroughputExceededException", "throttled"),
            (400, "RequestLimitExceeded", "throttled"),
            (400, "TransactionConflictException", "contended"),
            (400, "ReplicatedWriteConflictException", "contended"),
            (400, "TransactionInProgressException", "unknown"),
            (500, "InternalServerError", "unknown"),
            (503, "ServiceUnavailable", "unknown"),
            (502, "anything", "unknown"),
            (200, "anything", "unknown"),
            (301, "anything", "permanent"),
            (400, "ValidationException", "permanent"),
            (400, "AccessDeniedException", "permanent"),
            (400, "ResourceNotFoundException", "permanent"),
            (400, "IdempotentParameterMismatchException", "permanent"),
        ] {
            assert_eq!(class(&coded(status, code)), expected, "{status} {code}");
        }
    }

    #[test]
    fn a_request_without_an_answer_has_an_unknown_outcome() {
        let lost = [
            Sdk::timeout_error("too slow"),
            Sdk::dispatch_failure(ConnectorError::io("broken".into())),
            Sdk::dispatch_failure(ConnectorError::timeout("too slow".into())),
            Sdk::response_error("cut off", answer(200)),
        ];
        for error in lost {
            assert_eq!(class(&error.into()), "unknown");
        }
        let never_sent = [
            Sdk::dispatch_failure(ConnectorError::user("no URL".into())),
            Sdk::dispatch_failure(ConnectorError::other(
                ResolveEndpointError::message("no Region").into(),
                None,
            )),
            Sdk::construction_failure("a field is missing"),
        ];
        for error in never_sent {
            assert_eq!(class(&error.into()), "permanent");
        }
    }

    fn reasons(codes: &[&str]) -> Failure {
        let reasons = codes.iter().map(|code| CancellationReason::builder().code(*code).build());
        let cancelled = TransactionCanceledException::builder()
            .set_cancellation_reasons(Some(reasons.collect()))
            .build();
        let error = TransactWriteItemsError::TransactionCanceledException(cancelled);
        Sdk::service_error(error, answer(400)).into()
    }

    #[test]
    fn every_cancellation_reason_has_its_class() {
        let refused = |code: &str| Reason::Refused { code: code.into(), message: String::new() };
        for (code, expected) in [
            ("None", Reason::None),
            ("ConditionalCheckFailed", Reason::Condition(None)),
            ("TransactionConflict", Reason::Conflict),
            ("ThrottlingError", Reason::Throttled),
            ("ProvisionedThroughputExceeded", Reason::Throttled),
            ("ItemCollectionSizeLimitExceeded", refused("ItemCollectionSizeLimitExceeded")),
            ("ValidationError", refused("ValidationError")),
            ("DuplicateItem", refused("DuplicateItem")),
        ] {
            match reasons(&[code]) {
                Failure::Cancelled(found) => assert_eq!(found, [expected], "{code}"),
                other => panic!("{code} gave {other:?}"),
            }
        }
    }

    #[test]
    fn a_failed_condition_outweighs_contention_in_a_mixture() {
        for (codes, transient, contended) in [
            (&["None", "TransactionConflict"][..], true, true),
            (&["ThrottlingError", "None"], true, false),
            (&["TransactionConflict", "ProvisionedThroughputExceeded"], true, false),
            (&["TransactionConflict", "ValidationError"], true, false),
            (&["TransactionConflict", "ConditionalCheckFailed"], false, false),
            (&["ConditionalCheckFailed", "ThrottlingError"], false, false),
            (&["ValidationError", "None"], false, false),
            (&["None", "ItemCollectionSizeLimitExceeded"], false, false),
            (&[], false, false),
        ] {
            let failure = reasons(codes);
            let found = (failure.is_transient(), failure.is_contention());
            assert_eq!(found, (transient, contended), "{codes:?}");
        }
    }

    #[test]
    fn a_failed_condition_brings_the_item_that_was_found() {
        let reason = CancellationReason::builder()
            .code("ConditionalCheckFailed")
            .item("id", AttributeValue::S("a".into()))
            .build();
        let item = Item::from([("id".to_owned(), AttributeValue::S("a".into()))]);
        assert_eq!(Reason::of(reason), Reason::Condition(Some(item)));
    }
}
