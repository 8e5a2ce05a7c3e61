//! The requests and units of a vault.

use ringfence_core::{KEPT_OPEN_MS, Tag, Vault};
use serde_json::json;

use crate::world::{World, marked, opened, sealed};

#[tokio::test]
async fn a_new_subject_costs_one_write_unit_and_half_a_read_unit_and_a_known_one_nothing() {
    let world = World::new();
    let (vault, names) = (world.vault(), |n| format!("s{n}"));
    let seal = async |subject: &str| sealed(&vault, marked(subject, "Ada")).await.unwrap();
    // The first one makes the branch key too.
    seal("first").await;
    assert_eq!(world.spent(&<_>::default()), (2, 1.5, 2, 2.0));
    let before = world.usage();
    seal("ada").await;
    assert_eq!(world.spent(&before), (1, 0.5, 1, 1.0));
    let before = world.usage();
    let both = json!([marked("ada", 1), { "deep": marked("first", null()) }, marked("ada", "b")]);
    let both = sealed(&vault, both).await.unwrap();
    opened(&vault, &both).await.unwrap();
    vault.fingerprint("ada", "{}").await.unwrap();
    assert_eq!(world.spent(&before), (0, 0.0, 0, 0.0));
    // The keys of many subjects come in one request.
    let many: Vec<_> = (0..40).map(|n| marked(&names(n), n)).collect();
    let many = sealed(&vault, json!(many)).await.unwrap();
    let before = world.usage();
    let cold = world.vault();
    opened(&cold, &many).await.unwrap();
    assert_eq!(world.spent(&before), (2, 20.0 + 1.0, 0, 0.0), "40 subjects and the branch key");
    // They are kept for a time.
    for (waited, spent) in [(KEPT_OPEN_MS - 1, (0, 0.0, 0, 0.0)), (1, (1, 20.0, 0, 0.0))] {
        world.wait(waited);
        let before = world.usage();
        opened(&cold, &many).await.unwrap();
        assert_eq!(world.spent(&before), spent, "{waited}");
    }
    let before = world.usage();
    world.table.forget("ada", 1, "asked for it").await.unwrap();
    assert_eq!(world.spent(&before), (1, 1.0, 1, 1.0));
    // A key for tags is made once. A dry run prices a key, and makes none.
    let tags = [Tag::new("email", "ada@example.com")];
    let before = world.usage();
    vault.blind(&tags).await.unwrap();
    assert_eq!(world.spent(&before), (1, 1.0, 1, 1.0));
    let before = world.usage();
    let dry = std::sync::Arc::new(world.vault()).dry();
    let mut payload = marked("new", "Ada");
    dry.seal(vec![&mut payload]).await.unwrap();
    dry.open(vec![&mut payload]).await.unwrap();
    let (_, _, writes, units) = world.spent(&before);
    assert_eq!((payload, writes, units), (marked("new", "Ada"), 1, 1.0));
    assert!(world.table.standings(&["new"].into()).await.unwrap().is_empty());
}

fn null() -> serde_json::Value {
    serde_json::Value::Null
}
