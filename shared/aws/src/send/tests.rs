//! Compares the SDK's call with ours: both send the same request, and both return the same for every answer.

use std::error::Error as StdError;
use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, future};
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::operation::get_item::GetItemInput;
use aws_sdk_dynamodb::operation::get_item::builders::GetItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, DeleteRequest, Get, KeysAndAttributes, Put, TransactGetItem, TransactWriteItem,
    WriteRequest,
};
use aws_smithy_async::time::TimeSource;
use futures::future::join_all;
use server::{Arrived, Does, Server, Time, coded};

use super::*;
use crate::{Failure, Item};

mod endpoints;
mod server;

const NOW_S: u64 = 1_719_100_800;
/// An answer that breaks off.
const TORN: &str = "HTTP/1.1 200 -\r\ncontent-length: 20\r\n\r\n{\"It";

/// The caller's view of an answer.
fn learned<O: Debug, E>(answer: Result<O, SdkError<E, HttpResponse>>) -> String
where
    E: StdError + Into<aws_sdk_dynamodb::Error> + Debug + Send + Sync + 'static,
{
    let error = match answer {
        Ok(output) => return format!("{output:?}"),
        Err(error) => error,
    };
    let kind = match &error {
        SdkError::ConstructionFailure(_) => "not built".to_owned(),
        SdkError::TimeoutError(_) => "too slow".to_owned(),
        SdkError::DispatchFailure(failure) => format!("{:?}", failure.as_connector_error()),
        SdkError::ResponseError(answer) => format!("unreadable {}", raw(answer.raw())),
        SdkError::ServiceError(refused) => format!("{:?} {}", refused.err(), raw(refused.raw())),
        _ => "another kind".to_owned(),
    };
    let mut deepest: &dyn StdError = &error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    let deepest = match error {
        SdkError::TimeoutError(_) => String::new(),
        _ => deepest.to_string(),
    };
    format!("{kind}; {deepest}; {:?}", std::mem::discriminant(&Failure::from(error)))
}

fn raw(answer: &HttpResponse) -> String {
    format!("{} {:?} {:?}", answer.status(), answer.headers(), answer.body())
}

/// Takes the requests without their random ids.
fn without_ids(arrived: &Mutex<Vec<Arrived>>) -> Vec<Arrived> {
    let mut arrived = std::mem::take(&mut *arrived.lock().expect("no panic"));
    for request in &mut arrived {
        request.connection = 0;
        let count = request.headers.len();
        request.headers.retain(|header| !header.starts_with("amz-sdk-invocation-id: "));
        assert_eq!(request.headers.len() + 1, count, "{request:?}");
    }
    arrived
}

/// Sends the same request in both ways. They must be the same on the wire and for callers. Returns the request.
macro_rules! both {
    ($arrived:expr, $sender:expr, $case:expr, $request:expr) => {{
        let request = $request;
        let input = request.as_input().clone().build();
        let theirs = learned(Box::pin(request.send()).await);
        let sent = without_ids($arrived);
        let ours = learned(Box::pin($sender.send(input)).await);
        assert_eq!(ours, theirs, "{}", $case);
        assert_eq!(without_ids($arrived), sent, "{}", $case);
        sent
    }};
}

fn item() -> Item {
    [("p".to_owned(), AttributeValue::S("ü\u{1f}\"".to_owned()))].into()
}

/// Sends each operation of a table in both ways. Returns the requests of one of them.
async fn all_operations(
    arrived: &Mutex<Vec<Arrived>>,
    client: &Client,
    sender: &Sender,
    case: &str,
) -> Vec<Arrived> {
    let mut sent = Vec::new();
    macro_rules! send {
        ($request:expr) => {
            sent.extend(both!(arrived, sender, case, $request))
        };
    }
    let (table, key) = (sender.table(), || Some(item()));
    send!(client.get_item().table_name(table).set_key(key()));
    send!(client.put_item().table_name(table).set_item(key()));
    send!(client.delete_item().table_name(table).set_key(key()));
    let update = client.update_item().table_name(table).set_key(key());
    send!(update.update_expression("SET a = :a"));
    let query = client.query().table_name(table).key_condition_expression("p = :p");
    send!(query.expression_attribute_values(":p", AttributeValue::N("1".into())));
    send!(client.scan().table_name(table).limit(3));
    let keys = KeysAndAttributes::builder().keys(item()).build().expect("keys are set");
    send!(client.batch_get_item().request_items(table, keys));
    let delete = DeleteRequest::builder().set_key(key()).build().expect("a key is set");
    let delete = WriteRequest::builder().delete_request(delete).build();
    send!(client.batch_write_item().request_items(table, vec![delete]));
    let get = Get::builder().table_name(table).set_key(key()).build().expect("both are set");
    let get = TransactGetItem::builder().get(get).build();
    send!(client.transact_get_items().transact_items(get));
    let put = Put::builder().table_name(table).set_item(key()).build().expect("both are set");
    let put = TransactWriteItem::builder().put(put).build();
    let transact = client.transact_write_items().transact_items(put);
    send!(transact.client_request_token("token-1"));
    sent
}

#[tokio::test]
async fn every_operation_is_on_the_wire_and_to_callers_as_the_sdks_own() {
    let server = Server::start().await;
    let client = server.client();
    let sender = Sender::new(client.clone(), "t".to_owned(), &Time::at(NOW_S).0);
    let modelled = [
        "ConditionalCheckFailedException",
        "IdempotentParameterMismatchException",
        "InvalidEndpointException",
        "ItemCollectionSizeLimitExceededException",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "ResourceNotFoundException",
        "ThrottlingException",
        "TransactionCanceledException",
        "TransactionConflictException",
        "TransactionInProgressException",
    ];
    let others = [
        "AccessDeniedException",
        "ExpiredTokenException",
        "ValidationException",
        "NobodyKnowsThisException",
    ];
    let refused = modelled.into_iter().chain(others).map(|code| Does::Answer(400, coded(code)));
    let text = |status, body: &str| Does::Answer(status, body.to_owned());
    let mut does = vec![
        text(200, "{}"),
        text(
            200,
            r#"{"Item":{"p":{"S":"a"}},"Items":[{"n":{"N":"1"}}],"Count":1,"ConsumedCapacity":{"CapacityUnits":1.5}}"#,
        ),
        text(200, ""),
        text(200, "["),
        text(
            200,
            r#"{"Item":5,"Items":5,"Attributes":5,"Responses":5,"UnprocessedItems":5,"ItemCollectionMetrics":5}"#,
        ),
        text(301, ""),
        text(400, ""),
        text(413, "<html>"),
        text(500, &coded("InternalServerError")),
        text(500, ""),
        text(502, "<html>"),
        text(503, &coded("ServiceUnavailable")),
        Does::Raw(TORN),
        Does::Raw(
            "HTTP/1.1 103 -\r\n\r\nHTTP/1.1 200 -\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        ),
        Does::Raw("HTTP/1.1 200 -\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"),
        Does::Raw("HTTP/1.0 200 -\r\n\r\n{"),
        Does::Raw("this is not HTTP\r\n\r\n"),
        Does::Raw(""),
        Does::Reset,
    ];
    does.extend(refused);
    for does in does {
        server.will(does.clone());
        let sent = all_operations(&server.arrived, &client, &sender, &format!("{does:?}")).await;
        assert_eq!(sent.len(), 10, "{does:?}");
    }
    server.will(Does::Wait);
    let credentials = Credentials::new("AKID", "secret", None, None, "test");
    let client = server.client_with(&Time::at(NOW_S), credentials, Duration::from_millis(50));
    let sender = Sender::new(client.clone(), "t".to_owned(), &Time::at(NOW_S).0);
    let get = || client.get_item().table_name("t");
    both!(&server.arrived, sender, "no answer", get().set_key(Some(item())));
    both!(&server.arrived, sender, "no key", get());
}

fn get(client: &Client) -> GetItemFluentBuilder {
    client.get_item().table_name("t").set_key(Some(item()))
}

/// Sends only ours.
async fn send(sender: &Sender, client: &Client) -> Answer<GetItemInput> {
    sender.send(get(client).as_input().clone().build()).await
}

#[tokio::test]
async fn a_wrong_clock_heals_with_the_first_answer() {
    for ahead_s in [-3_600, 600, 200, 0] {
        let (server, time) = (Server::start().await, Time::at(NOW_S));
        server.ahead_s.store(ahead_s, Ordering::SeqCst);
        let client = server.client();
        let sender = Sender::new(client.clone(), "t".to_owned(), &time.0);
        send(&sender, &client).await.expect("the second signature is on time");
        let sent = if ahead_s.abs() > 240 { 2 } else { 1 };
        assert_eq!(server.take().len(), sent, "{ahead_s}");
        let now_s = NOW_S.saturating_add_signed(ahead_s);
        assert_eq!(time.0.now_ms() / 1_000, now_s, "the times of events");
        send(&sender, &client).await.expect("it is signed for the service's time");
        let [arrived] = &server.take()[..] else { panic!("one request") };
        let now_s = i64::try_from(now_s).expect("a time");
        let date = format!("x-amz-date: {}", signature::timestamp(now_s));
        assert!(arrived.headers.contains(&date), "{arrived:?}");

        server.will(Does::Answer(400, coded("AccessDeniedException")));
        send(&sender, &client).await.expect_err("it is refused for another reason than its time");
        assert_eq!(server.take().len(), 1, "a refusal on time is not repeated");

        let opened = Time::at(NOW_S);
        crate::open(&client, &opened.0).await;
        assert_eq!(opened.0.now_ms(), time.0.now_ms(), "also a refusal to open has a date");
    }
}

#[tokio::test]
async fn a_clock_that_is_set_right_after_the_signature_heals_the_request() {
    let (server, time) = (Server::start().await, Time::at(NOW_S));
    let credentials = Credentials::new("AKID", "secret", None, None, "test");
    let client = server.client_with(&time, credentials, Duration::from_secs(60));
    let sender = Sender::new(client.clone(), "t".to_owned(), &time.0);
    server.will(Does::Correct(time.clone()));
    for wrong in [NOW_S - 3_600, NOW_S + 3_600] {
        time.set(wrong);
        send(&sender, &client).await.expect("the second signature is on time");
        assert_eq!(server.take().len(), 2, "{wrong}");
    }
}

#[tokio::test]
async fn a_connection_that_failed_is_not_used_again() {
    for (does, again) in [
        (Does::Answer(200, "{}".to_owned()), true),
        (Does::Answer(400, coded("ValidationException")), true),
        (Does::Answer(500, coded("InternalServerError")), false),
        (Does::Answer(503, String::new()), false),
        // It differs from the sent answer, but it is complete.
        (Does::Answer(200, "no".to_owned()), true),
        (Does::Raw(TORN), false),
    ] {
        let server = Server::start().await;
        let client = server.client();
        let sender = Sender::new(client.clone(), "t".to_owned(), &Time::at(NOW_S).0);
        server.will(does.clone());
        let theirs = get(&client).send().await.is_ok();
        server.will(Does::Answer(200, "{}".to_owned()));
        get(&client).send().await.expect("the server is well again");
        let sdks = server.take();
        server.will(does.clone());
        assert_eq!(send(&sender, &client).await.is_ok(), theirs);
        server.will(Does::Answer(200, "{}".to_owned()));
        send(&sender, &client).await.expect("the server is well again");
        let used_again = |arrived: &[Arrived]| arrived[0].connection == arrived[1].connection;
        assert_eq!([used_again(&sdks), used_again(&server.take())], [again; 2], "{does:?}");

        server.will(Does::Wait);
        tokio::select! {
            _ = send(&sender, &client) => panic!("there is no answer"),
            () = server.has_one() => {}
        }
        server.will(Does::Answer(200, "{}".to_owned()));
        send(&sender, &client).await.expect("the server is well again");
        assert!(!used_again(&server.take()), "a request was given up");
    }
}

/// Credentials that expire ten minutes after they were given, by the clock of the call.
#[derive(Clone, Debug)]
struct Renewed(Time, Arc<AtomicUsize>);

impl ProvideCredentials for Renewed {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let given = self.1.fetch_add(1, Ordering::SeqCst);
        if given >= 2 {
            return future::ProvideCredentials::ready(Err(CredentialsError::not_loaded(
                "no more of them",
            )));
        }
        let end = self.0.now() + Duration::from_secs(600);
        let token = Some(format!("token-{given}"));
        future::ProvideCredentials::ready(Ok(Credentials::new(
            "AKID",
            "secret",
            token,
            Some(end),
            "test",
        )))
    }
}

#[tokio::test]
async fn credentials_are_renewed_once_and_before_they_end() {
    let server = Server::start().await;
    let (time, given) = (Time::at(NOW_S), Arc::new(AtomicUsize::new(0)));
    let client =
        server.client_with(&time, Renewed(time.clone(), given.clone()), Duration::from_secs(60));
    let sender = Sender::new(client.clone(), "t".to_owned(), &time.0);
    // The SDK's cache renews them shortly before they expire.
    for (at, times) in [(0, 1), (500, 1), (598, 2), (1_000, 2)] {
        time.set(NOW_S + at);
        server.ahead_s.store(i64::try_from(at).expect("small"), Ordering::SeqCst);
        let sends = (0..8).map(|_| send(&sender, &client));
        for answer in join_all(sends).await {
            answer.expect("it has credentials");
        }
        assert_eq!(given.load(Ordering::SeqCst), times, "after {at} seconds");
        let token = format!("x-amz-security-token: token-{}", times - 1);
        for arrived in server.take() {
            assert!(arrived.headers.contains(&token), "{arrived:?}");
        }
    }
    time.set(NOW_S + 2_000);
    let error = learned(send(&sender, &client).await);
    assert!(error.contains("no more of them"), "{error}");
    assert_eq!(server.take(), [], "nothing is sent without credentials");
}
