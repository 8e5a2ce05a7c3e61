//! `sql`, with DuckDB if it is installed.

use std::fs;
use std::path::Path;

use ringfence_aws::Clock;
use ringfence_harness::PipProgram;
use serde_json::{Value, json};

use crate::data::{export, index, met, of_all_logs};

pub(crate) static DUCKDB: PipProgram = PipProgram {
    tests: "an export asked in SQL",
    packages: &["duckdb-cli==1.5.6"],
    file: "duckdb_cli/duckdb",
    required: "RINGFENCE_REQUIRE_DUCKDB",
    folder: env!("CARGO_TARGET_TMPDIR"),
};

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_queried_in_sql() {
    let world = of_all_logs().await;
    world.append(vec![met("ada")]).await;
    index(&world).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it's events");
    export(&world, &path, &[]);
    let sql = |select: &str, programs: &Path| {
        let mut command = world.command(&["sql", path.to_str().unwrap(), select, "--json"]);
        let output = command.env("PATH", programs).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let select = "SELECT unnest(\"sealIds\") AS seal FROM ParcelPacked ORDER BY seal -- each once";
    let (status, views, error) = sql(select, folder.path());
    assert!(status == 2 && error.contains("the program duckdb is not installed"), "{error}");
    assert!(views.contains("CREATE VIEW \"ParcelPacked\" AS SELECT id AS _id, "), "{views}");
    assert!(views.ends_with(&format!("{select}\n;\n")), "{views}");

    let segment = path.join("000001.jsonl");
    let whole = fs::read(&segment).unwrap();
    fs::write(&segment, &whole[..whole.len() - 1]).unwrap();
    let (status, _, error) = sql(select, folder.path());
    assert!(status == 2 && error.contains("000001.jsonl is not as the export wrote it"), "{error}");
    fs::write(&segment, whole).unwrap();

    let Some(program) = DUCKDB.path() else { return };
    let programs = program.parent().unwrap();
    let rows = |select: &str| {
        let (status, rows, error) = sql(select, programs);
        assert_eq!((status, &*error), (0, ""), "{select}");
        serde_json::from_str::<Value>(&rows).unwrap()
    };
    assert_eq!(rows(select), json!([{ "seal": "s1" }, { "seal": "s2" }, { "seal": "s3" }]));
    let of_eve = rows("SELECT _id, _version, _slot FROM ParcelPacked WHERE _principal = 'eve'");
    let parcel = "orderId+parcelId:o1/p1/1";
    assert_eq!(of_eve, json!([{ "_id": parcel, "_version": 1, "_slot": 1 }]));
    // The payload on a log of streams does not have the id of its stream.
    let renamed = rows("SELECT DISTINCT \"customerId\", name FROM CustomerRenamed");
    assert_eq!(renamed, json!([{ "customerId": "ada#1", "name": "Ada" }]));
    // A time's offset counts, and numbers can be below zero.
    let paid = rows(
        "SELECT DISTINCT \"paidAt\", CAST(\"paidAt\" AS DATE) AS day, -items AS back \
                     FROM CheckedOut WHERE items = 2",
    );
    let time = "2024-06-22 23:30:00+00";
    assert_eq!(paid, json!([{ "paidAt": time, "day": "2024-06-22", "back": -2 }]));
    let ago = Clock::system().now_ms() - 3_600_000;
    let recent =
        rows(&format!("SELECT count(*) AS n FROM events WHERE epoch_ms(\"recordedAt\") > {ago}"));
    assert_eq!(recent, json!([{ "n": 10 }]));
    assert_eq!(rows("SELECT name->>'of' AS of FROM CustomerMet"), json!([{ "of": "ada" }]));
    let (status, _, error) = sql("SELECT nothing FROM ParcelPacked", programs);
    assert!(status == 2 && error.contains("duckdb: Binder Error"), "{error}");
}
