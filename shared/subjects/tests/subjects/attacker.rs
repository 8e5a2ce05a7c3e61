//! What an attacker can read with each thing that can be stolen, of a person who is known and of one who is forgotten.

use std::fs;

use ringfence_core::{KEPT_OPEN_MS, Tag, Vault};
use ringfence_subjects::{KeyVault, Wrap};

use crate::world::{NOW_MS, World, marked, opened, sealed};

const SECRET: &str = "ada@example.com";

#[tokio::test]
async fn a_thief_of_one_thing_reads_nothing_and_only_an_old_backup_has_forgotten_persons() {
    let world = World::new();
    let own = || Wrap::file(&world.key_file()).unwrap();
    let (vault, warm) = (world.vault(), world.vault());
    let mut values = Vec::new();
    for subject in ["known", "forgotten"] {
        values.push(sealed(&vault, marked(subject, SECRET)).await.unwrap());
        opened(&warm, values.last().unwrap()).await.unwrap();
    }
    let tags = [Tag::new("email", SECRET)];
    let tag = vault.blind(&tags).await.unwrap().remove(0).remove(0);
    // The backup of the table from before.
    let backup = World::new();
    for p in ["branch", "blind", "subject#known", "subject#forgotten"] {
        backup.restore(world.item(p).await.unwrap()).await;
    }
    world.table.forget("forgotten", NOW_MS, "asked for it").await.unwrap();
    let reads = async |vault: &KeyVault| {
        let mut reads = Vec::new();
        for value in &values {
            reads.push(match opened(vault, value).await {
                Ok(open) if open["$personal"] == SECRET => "all",
                Ok(open) if open["$forgotten"] == true => "forgotten",
                Ok(open) => panic!("{open}"),
                Err(_) => "nothing",
            });
        }
        reads
    };

    // Events, as the table, the index, the bus, exports and their backups have them: nobody can guess a value.
    let events = format!("{values:?} {tag}");
    assert!(!events.contains("example"), "{events}");
    let elsewhere = World::new().vault();
    assert_ne!(elsewhere.blind(&tags).await.unwrap()[0][0], tag, "a tag is no plain hash");
    let again = sealed(&vault, marked("known", SECRET)).await.unwrap();
    assert_ne!(again, values[0], "equal values can't be seen");

    let stolen = tempfile::tempdir().unwrap();
    let other_key = stolen.path().join("key");
    fs::write(&other_key, [2; 32]).unwrap();
    let other_key = || Wrap::file(&other_key).unwrap();
    for (has, vault, can_read) in [
        ("events and an empty table of keys", elsewhere, ["nothing", "nothing"]),
        ("and the table of keys", world.vault_of("prod", other_key()), ["nothing", "forgotten"]),
        ("and its backup", backup.vault_of("prod", other_key()), ["nothing", "nothing"]),
        (
            "the key of KMS for another stack",
            backup.vault_of("test", own()),
            ["nothing", "nothing"],
        ),
        ("the table and the key of KMS", world.vault(), ["all", "forgotten"]),
        ("the backup and the key of KMS", backup.vault_of("prod", own()), ["all", "all"]),
    ] {
        assert_eq!(reads(&vault).await, can_read, "{has}");
    }
    // The memory of a warm function.
    assert_eq!(reads(&warm).await, ["all", "all"]);
    world.wait(2 * KEPT_OPEN_MS);
    assert_eq!(reads(&warm).await, ["all", "forgotten"], "after five minutes");
    // A value that is moved to somebody else opens for nobody.
    let mut moved = values[1].clone();
    (moved["of"], moved["k"]) = ("known".into(), values[0]["k"].clone());
    assert!(opened(&backup.vault_of("prod", own()), &moved).await.is_err());
}
