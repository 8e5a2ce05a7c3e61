//! Forgotten subjects.

use std::collections::BTreeSet;

use ringfence_core::{KEPT_OPEN_MS, Vault, VaultError};
use ringfence_subjects::{READABLE_MS, WHY_BYTES_MAX};
use serde_json::json;

use crate::world::{NOW_MS, World, forgotten, marked, opened, sealed};

fn is_forgotten<T>(result: Result<T, VaultError>) -> bool {
    matches!(result, Err(VaultError::Forgotten(subject)) if subject == "ada")
}

#[tokio::test]
async fn a_forgotten_subject_has_a_fence_above_which_a_key_may_be_allowed() {
    let world = World::new();
    let (vault, warm) = (world.vault(), world.vault());
    let old = sealed(&vault, json!([marked("ada", "Ada"), marked("bob", "Bob")])).await.unwrap();
    let open = json!([marked("ada", "Ada"), marked("bob", "Bob")]);
    assert_eq!(opened(&warm, &old).await.unwrap(), open);
    let names = async || {
        let item = world.item("subject#ada").await.unwrap();
        item.into_keys().collect::<BTreeSet<_>>()
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(names().await, set(&["p", "k", "keys", "madeAt"]));

    let fence = world.table.forget("ada", NOW_MS, "asked for it").await.unwrap();
    assert_eq!(
        (fence.forgotten_at_ms, fence.through, &*fence.why),
        (NOW_MS, NOW_MS, "asked for it")
    );
    assert_eq!(fence.fingerprints.iter().map(String::len).collect::<Vec<_>>(), [64]);
    let fenced = ["p", "forgottenAt", "putAt", "through", "why", "fingerprints"];
    assert_eq!(names().await, set(&fenced));
    // Warm functions know the key for a time. What they seal with it is lost.
    assert_eq!(opened(&warm, &old).await.unwrap(), open);
    let late = sealed(&warm, marked("ada", "late")).await.unwrap();
    let gone = json!([forgotten("ada"), marked("bob", "Bob")]);
    assert_eq!(opened(&world.vault(), &old).await.unwrap(), gone);
    world.wait(KEPT_OPEN_MS);
    assert_eq!(opened(&warm, &old).await.unwrap(), gone);
    assert_eq!(opened(&warm, &late).await.unwrap(), forgotten("ada"));
    assert!(is_forgotten(sealed(&warm, marked("ada", "again")).await));
    assert!(is_forgotten(warm.fingerprint("ada", "{}").await));
    // To forget again is to do nothing.
    let again = world.table.forget("ada", NOW_MS, "another reason").await.unwrap();
    assert_eq!(again, fence);

    let early = world.table.allow_again("ada").await.unwrap_err().to_string();
    assert!(early.contains("would be lost; allow it from 20"), "{early}");
    world.wait(READABLE_MS - KEPT_OPEN_MS);
    let (stale, other) = (world.vault(), world.vault());
    for vault in [&stale, &other] {
        assert_eq!(opened(vault, &late).await.unwrap(), forgotten("ada"));
    }
    world.table.allow_again("ada").await.unwrap();
    let new = sealed(&warm, marked("ada", "new")).await.unwrap();
    assert_eq!(new["k"], world.clock.now_ms());
    assert_eq!(names().await, &set(&fenced) | &set(&["k", "keys", "madeAt"]));
    // `vault` still knows the time before.
    assert_eq!(
        opened(&vault, &json!([old, new])).await.unwrap(),
        json!([gone, marked("ada", "new")])
    );
    // `stale` knows the fence, not the new key.
    assert_eq!(opened(&stale, &new).await.unwrap(), marked("ada", "new"));
    assert_eq!(sealed(&other, marked("ada", "newer")).await.unwrap()["k"], new["k"]);
    world.table.allow_again("ada").await.unwrap();
    let last = world.table.forget("ada", NOW_MS + 1, "asked again").await.unwrap();
    assert_eq!(last.through, world.clock.now_ms());
    assert_eq!(opened(&world.vault(), &new).await.unwrap(), forgotten("ada"));

    let refused = world.table.allow_again("bob").await.unwrap_err().to_string();
    assert!(refused.contains("bob is not forgotten"), "{refused}");
    for why in ["", &"y".repeat(WHY_BYTES_MAX + 1)] {
        let refused = world.table.forget("ada", 1, why).await.unwrap_err().to_string();
        assert!(refused.contains("give a reason of 1 to 1024 bytes"), "{refused}");
    }
}

/// The events `SubjectForgotten` are in another table, so they tell what a restored table has lost.
#[tokio::test]
async fn a_restored_table_gets_its_fences_again() {
    let world = World::new();
    let old = sealed(&world.vault(), json!([marked("ada", 1), marked("bob", 2)])).await.unwrap();
    let copy = world.item("subject#ada").await.unwrap();
    for subject in ["ada", "eve"] {
        world.table.forget(subject, NOW_MS, "asked for it").await.unwrap();
    }
    let fenced = async || {
        let found = world.table.standings(&["ada", "eve", "zoe"].into()).await.unwrap();
        let fenced = found.iter().filter(|(_, it)| it.fence().is_some() && !it.has_key());
        fenced.map(|(subject, _)| subject.clone()).collect::<Vec<_>>()
    };
    assert_eq!(fenced().await, ["ada", "eve"]);
    world.restore(copy).await;
    assert_eq!(fenced().await, ["eve"]);
    let open = json!([marked("ada", 1), marked("bob", 2)]);
    assert_eq!(opened(&world.vault(), &old).await.unwrap(), open, "it came back");
    world.table.forget("ada", NOW_MS, "restored").await.unwrap();
    let gone = json!([forgotten("ada"), marked("bob", 2)]);
    assert_eq!(opened(&world.vault(), &old).await.unwrap(), gone);
    // A subject whose key was made after the copy is not forgotten, but lost.
    let delete = world.client.delete_item().table_name("keys");
    let p = aws_sdk_dynamodb::types::AttributeValue::S("subject#bob".to_owned());
    delete.key("p", p).send().await.unwrap();
    match opened(&world.vault(), &old).await {
        Err(VaultError::Damaged { subject, why }) => {
            assert!(subject == "bob" && why.contains("not in the table of keys"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    // One such value keeps no other closed. Once she has a new key, it counts as forgotten.
    let mut all = json!([old[1], marked("carl", 3)]);
    world.wait(1);
    all[1] = sealed(&world.vault(), all[1].take()).await.unwrap();
    world.vault().open(vec![&mut all]).await.unwrap_err();
    assert_eq!(all, json!([old[1], marked("carl", 3)]));
    sealed(&world.vault(), marked("bob", "new")).await.unwrap();
    assert_eq!(opened(&world.vault(), &old).await.unwrap(), json!([gone[0], forgotten("bob")]));
    let no_table =
        ringfence_subjects::KeyTable::new(world.client.clone(), "none", world.clock.clone());
    let failed = no_table.forget("ada", 1, "asked for it").await.unwrap_err();
    assert!(
        ringfence_core::chain(&failed).starts_with("reading the table of keys failed"),
        "{failed}"
    );
}
