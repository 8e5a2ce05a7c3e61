//! New keys of the stack.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::wire::Fault;
use ringfence_core::{LogError, Tag, Vault, chain};
use ringfence_subjects::{KeyVault, Purpose, Rotation, Wrap};
use serde_json::json;

use crate::world::{NOW_MS, World, marked, message, opened, sealed};

const TEN_MINUTES_MS: u64 = 600_000;
const FORTY_MINUTES_MS: u64 = 2_400_000;

#[tokio::test]
async fn a_new_blind_key_is_asked_for_at_once_and_used_after_forty_minutes() {
    let (world, tags) = (World::new(), [Tag::new("email", "ada@a.com")]);
    let numbers = async |vault: &KeyVault| -> Vec<String> {
        let values = vault.blind(&tags).await.unwrap();
        values.into_iter().map(|values| values[0].split('.').next().unwrap().to_owned()).collect()
    };
    let (vault, warm) = (world.vault(), world.vault());
    assert_eq!(vault.rotate(Purpose::Blind).await.unwrap(), None, "nothing to rotate");
    assert_eq!(numbers(&warm).await, ["b1"], "the first key is used at once");
    world.wait(FORTY_MINUTES_MS - 1);
    let from = |made_at_ms| made_at_ms + FORTY_MINUTES_MS;
    let rotated = |number, used_from_ms, is_new| Some(Rotation { number, used_from_ms, is_new });
    let rotate = async || vault.rotate(Purpose::Blind).await.unwrap();
    assert_eq!(rotate().await, rotated(1, NOW_MS, false));
    world.wait(1);
    assert_eq!(numbers(&warm).await, ["b1"]);
    world.wire.inject("PutItem", 0, Fault::LostAfter);
    let made_at_ms = world.clock.now_ms();
    assert_eq!(rotate().await, rotated(2, from(made_at_ms), true));
    assert_eq!(rotate().await, rotated(2, from(made_at_ms), false), "as often as one likes");
    assert_eq!(
        (numbers(&warm).await, numbers(&vault).await),
        (vec!["b1".to_owned()], vec!["b1".to_owned(), "b2".to_owned()])
    );
    world.wait(TEN_MINUTES_MS);
    assert_eq!(numbers(&warm).await, ["b1", "b2"]);
    world.wait(FORTY_MINUTES_MS - TEN_MINUTES_MS - 1);
    assert_eq!(numbers(&warm).await, ["b1", "b2"]);
    world.wait(1);
    assert_eq!(numbers(&warm).await, ["b2", "b1"]);
    // A cold function pays one read, whatever the number of keys.
    let before = world.usage();
    assert_eq!(numbers(&world.vault()).await, ["b2", "b1"]);
    assert_eq!(world.spent(&before), (1, 1.0, 0, 0.0));
    // With another key, nothing is written.
    let other = world.vault_of("other", Wrap::file(&world.key_file()).unwrap());
    other.rotate(Purpose::Blind).await.unwrap_err();
    for _ in 3..=10 {
        assert!(rotate().await.unwrap().is_new);
        world.wait(FORTY_MINUTES_MS);
    }
    let refused = chain(&vault.rotate(Purpose::Blind).await.unwrap_err());
    assert!(refused.contains("the stack has 10 blind keys, which is the most"), "{refused}");
}

#[tokio::test]
async fn a_new_branch_key_wraps_new_keys_and_a_changed_item_is_named() {
    let world = World::new();
    let vault = world.vault();
    let old = sealed(&vault, marked("ada", 1)).await.unwrap();
    world.wait(FORTY_MINUTES_MS);
    let warm = world.vault();
    opened(&warm, &old).await.unwrap();
    let now_ms = world.clock.now_ms();
    let rotation = Rotation { number: 2, used_from_ms: now_ms, is_new: true };
    assert_eq!(vault.rotate(Purpose::Branch).await.unwrap(), Some(rotation));
    let new = sealed(&vault, marked("bob", 2)).await.unwrap();
    let both = json!([old, new]);
    let open = json!([marked("ada", 1), marked("bob", 2)]);
    // A warm function reads the keys again when it meets a new one.
    for vault in [&warm, &world.vault()] {
        assert_eq!(opened(vault, &both).await.unwrap(), open);
    }
    // Only the key of bob needs the second branch key.
    let mut item = world.item("branch").await.unwrap();
    let Some(AttributeValue::M(keys)) = item.get_mut("keys") else { panic!("{item:?}") };
    keys.remove("2").unwrap();
    world.restore(item).await;
    assert_eq!(opened(&world.vault(), &old).await.unwrap(), marked("ada", 1));
    let refused = message(opened(&world.vault(), &new).await);
    assert!(refused.contains("branch#2 in the table of keys is missing"), "{refused}");
    for p in ["subject#ada", "branch"] {
        let item = world.item(p).await.unwrap();
        let mut changed = item.clone();
        changed.remove("keys");
        world.restore(changed).await;
        let refused = LogError::from(opened(&world.vault(), &old).await.unwrap_err());
        let refused = chain(&refused);
        assert!(refused.contains(&format!("the item {p}: the attribute `keys`")), "{refused}");
        world.restore(item).await;
    }
}
