//! Keys of the stack that KMS wraps: a server answers as KMS does.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ringfence_aws::{Trust, sdk_config_of};
use ringfence_core::LogError;
use ringfence_subjects::{Kms, Wrap};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::world::{World, marked, message, opened, sealed};

const ARN: &str = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";

/// The next answers, and what arrived: the operation and the body.
#[derive(Clone, Default)]
struct Server {
    next: Arc<Mutex<VecDeque<(u16, Value)>>>,
    arrived: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    fn answer(&self, headers: &HeaderMap, body: &str) -> (StatusCode, String) {
        let header = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert!(header("authorization").contains("/eu-west-1/kms/aws4_request"), "{headers:?}");
        assert_eq!(header("content-type"), "application/x-amz-json-1.1");
        let (operation, body) = (header("x-amz-target"), serde_json::from_str(body).unwrap());
        let next = self.next.lock().unwrap().pop_front();
        let (status, answer) = next.unwrap_or_else(|| answer(&operation, &body));
        self.arrived.lock().unwrap().push((operation, body));
        (StatusCode::from_u16(status).unwrap(), answer.to_string())
    }

    async fn wrap(&self) -> Wrap {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = self.clone();
        let answer = async move |headers: HeaderMap, body: String| server.answer(&headers, &body);
        tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
        let variables = [
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("AWS_ENDPOINT_URL_KMS", &*endpoint),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = sdk_config_of(variables.into()).unwrap();
        Wrap::kms(Kms::of(&config, &Trust::of_amazon(), ARN).await.unwrap())
    }

    /// The operations since the last call.
    fn operations(&self) -> Vec<String> {
        self.arrived.lock().unwrap().drain(..).map(|(operation, _)| operation).collect()
    }
}

/// The answers of KMS, whose ciphertext here is the encryption context with the plain text.
fn answer(operation: &str, body: &Value) -> (u16, Value) {
    assert_eq!(body["KeyId"], ARN);
    let context = body["EncryptionContext"].to_string();
    match operation {
        "TrentService.Encrypt" => {
            let blob = STANDARD.encode(format!("{context}{}", body["Plaintext"].as_str().unwrap()));
            (
                200,
                json!({ "CiphertextBlob": blob, "KeyId": ARN, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT" }),
            )
        }
        "TrentService.Decrypt" => {
            let blob = STANDARD.decode(body["CiphertextBlob"].as_str().unwrap()).unwrap();
            match String::from_utf8(blob).unwrap().strip_prefix(&context) {
                Some(plain) => (
                    200,
                    json!({ "KeyId": ARN, "Plaintext": plain, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT" }),
                ),
                None => (400, json!({ "__type": "InvalidCiphertextException" })),
            }
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn kms_is_asked_once_in_ten_minutes_and_its_refusals_say_the_way_out() {
    let (world, server) = (World::new(), Server::default());
    let vault = world.vault_of("prod", server.wrap().await);
    let ada = sealed(&vault, marked("ada", 1)).await.unwrap();
    let first = server.arrived.lock().unwrap()[0].1.clone();
    let context = json!({ "stack": "prod", "purpose": "branch" });
    assert_eq!(first["EncryptionContext"], context);
    assert_eq!(STANDARD.decode(first["Plaintext"].as_str().unwrap()).unwrap().len(), 32);
    assert_eq!(server.operations(), ["TrentService.Encrypt"]);
    for (waited, asked) in [(599_999, 0), (1, 1), (1, 0)] {
        world.wait(waited);
        assert_eq!(opened(&vault, &ada).await.unwrap(), marked("ada", 1));
        sealed(&vault, marked(&format!("new-{waited}"), 1)).await.unwrap();
        assert_eq!(server.operations(), vec!["TrentService.Decrypt"; asked], "{waited}");
    }
    // Another stack is refused by KMS itself.
    let other = world.vault_of("test", server.wrap().await);
    let refused = message(opened(&other, &ada).await);
    assert!(refused.contains("400 InvalidCiphertextException; another key or stack"), "{refused}");
    server.operations();

    let error =
        |code: &str| json!({ "__type": format!("com.amazonaws.kms#{code}"), "message": "no" });
    for (status, code, sent, advice) in [
        (400, "AccessDeniedException", 1, "allow `kms:Encrypt` and `kms:Decrypt` on the key"),
        (400, "DisabledException", 1, "enable the key"),
        (400, "KMSInvalidStateException", 1, "cancel the deletion of the key"),
        (400, "NotFoundException", 1, "set the ARN of a key in this Region"),
        (400, "ThrottlingException", 4, "ask for a higher quota"),
        (500, "KMSInternalException", 4, "500 KMSInternalException"),
    ] {
        server.next.lock().unwrap().extend(vec![(status, error(code)); sent]);
        let cold = world.vault_of("prod", server.wrap().await);
        let failed = opened(&cold, &ada).await.unwrap_err();
        let seen = LogError::from(failed);
        assert!(!seen.to_string().contains(ARN), "a caller sees {seen}");
        let seen = ringfence_core::chain(&seen);
        assert!(seen.contains(advice) && seen.contains(ARN), "{seen}");
        assert_eq!(server.operations().len(), sent, "{code}");
        // It works again as soon as KMS does.
        assert_eq!(opened(&cold, &ada).await.unwrap(), marked("ada", 1));
        server.operations();
    }
    server.next.lock().unwrap().push_back((200, json!({ "KeyId": ARN })));
    let refused = message(opened(&world.vault_of("prod", server.wrap().await), &ada).await);
    assert!(refused.contains("the answer of KMS has no `Plaintext`"), "{refused}");
}
