//! Sealed values, and writers that begin together.

use std::sync::Arc;

use futures::future::join;
use proptest::prelude::*;
use proptest::sample::Index;
use ringfence_aws::wire::Fault;
use ringfence_core::{LogError, Tag, Vault, VaultError};
use ringfence_subjects::Wrap;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::world::{NOW_MS, World, marked, opened, sealed};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e100..1e100).prop_map(|number: f64| Value::from(number)),
        any::<String>().prop_map(Value::from),
        Just(json!({ "$number": "12345678901234567890123.5" })),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,8}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

#[test]
fn any_value_opens_as_it_was_sealed_and_nowhere_else() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = World::new();
    let (vault, other) =
        (world.vault(), world.vault_of("test", Wrap::file(&world.key_file()).unwrap()));
    runtime.block_on(sealed(&vault, json!([marked("ada", 1), marked("bob", 2)]))).unwrap();
    proptest!(ProptestConfig::with_cases(100), |(value in any_json(), at in any::<Index>())| {
        runtime.block_on(async {
            let plain = json!({ "name": marked("ada", value), "other": [1, { "of": "ada" }] });
            let sealed = sealed(&vault, plain.clone()).await.unwrap();
            prop_assert_eq!(opened(&vault, &sealed).await.unwrap(), plain);
            prop_assert_eq!(&sealed["other"], &json!([1, { "of": "ada" }]));
            let text = sealed["name"]["$sealed"].as_str().unwrap();
            prop_assert_eq!(&sealed["name"], &json!({ "$sealed": text, "of": "ada", "k": NOW_MS }));

            let mut flipped = text.as_bytes().to_vec();
            let at = at.index(flipped.len());
            flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
            let flipped = String::from_utf8(flipped).unwrap();
            for (field, wrong) in [
                ("of", json!("bob")), ("of", json!("nobody")), ("of", json!(1)),
                ("k", json!("1")), ("$sealed", flipped.into()), ("$sealed", json!("")),
            ] {
                let mut changed = sealed.clone();
                changed["name"][field] = wrong;
                let found = opened(&vault, &changed).await;
                prop_assert!(matches!(found, Err(VaultError::Damaged { .. })), "{:?}", found);
            }
            prop_assert!(opened(&other, &sealed).await.is_err());
            Ok(())
        })?;
    });
    let mut deep = json!(1);
    (0..200).for_each(|_| deep = json!([deep]));
    let refused = runtime.block_on(sealed(&vault, marked("ada", deep))).unwrap_err();
    let refused = LogError::from(refused);
    assert!(
        matches!(&refused, LogError::Unstorable { reason, .. } if reason.contains("nest it less"))
    );
    assert!(refused.to_string().starts_with("a personal value[0]"), "{refused}");
}

#[tokio::test]
async fn writers_that_begin_together_have_the_same_keys_also_if_an_answer_is_lost() {
    let world = World::new();
    let (one, two) = (world.vault(), world.vault());
    // Three rounds of two puts: of the branch key, of the subject's key, of the key of tags.
    for _ in 0..3 {
        let barrier = Arc::new(Barrier::new(2));
        (0..2).for_each(|_| world.wire.inject("PutItem", 0, Fault::Meet(barrier.clone())));
    }
    let (a, b) = join(sealed(&one, marked("ada", "a")), sealed(&two, marked("ada", "b"))).await;
    let (a, b) = (a.unwrap(), b.unwrap());
    for vault in [&one, &two, &world.vault()] {
        assert_eq!(opened(vault, &a).await.unwrap(), marked("ada", "a"));
        assert_eq!(opened(vault, &b).await.unwrap(), marked("ada", "b"));
    }
    let fingerprint = one.fingerprint("ada", "{}").await.unwrap();
    assert_eq!(two.fingerprint("ada", "{}").await.unwrap(), fingerprint);

    let tags = [("email", "ada@a.com"), ("email", "bob@a.com"), ("mail", "ada@a.com")];
    let tags = tags.map(|(key, value)| Tag::new(key, value));
    let (a, b) = join(one.blind(&tags[..1]), two.blind(&tags)).await;
    let ([a], [b]) = (&a.unwrap()[..], &b.unwrap()[..]) else { panic!("one blind key") };
    assert!(a[0] == b[0] && a[0].starts_with("b1.") && a[0].len() == 29, "{a:?} {b:?}");
    assert!(b[1] != b[0] && b[2] != b[0], "{b:?}");
    assert!(world.wire.is_spent());
    assert_ne!(two.fingerprint("bob", "{}").await.unwrap(), fingerprint);

    world.wire.inject("PutItem", 0, Fault::LostAfter);
    let lost = sealed(&one, marked("eve", "e")).await.unwrap();
    assert_eq!(opened(&two, &lost).await.unwrap(), marked("eve", "e"));
}
