//! `sql`, with DuckDB if it can be had.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringfence_dynamo::Clock;
use serde_json::{Value, json};

use crate::data::{export, of_all_logs};

/// If this variable is `1`, the test fails on a machine that can't run DuckDB.
const REQUIRED: &str = "RINGFENCE_REQUIRE_DUCKDB";
const PACKAGE: &str = "duckdb-cli==1.5.6";

/// The program, installed once below the target folder.
fn duckdb() -> Result<PathBuf, String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE);
    let program = folder.join("duckdb_cli/duckdb");
    if !program.exists() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        pip.args(["--root-user-action=ignore", "--target"]).arg(&folder).arg(PACKAGE);
        let installed = pip.output().map_err(|error| format!("python3: {error}"))?;
        if !installed.status.success() {
            return Err(String::from_utf8_lossy(&installed.stderr).into_owned());
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&program, executable).map_err(|error| error.to_string())?;
        }
    }
    let version = Command::new(&program).arg("--version").output();
    version.map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(folder.join("duckdb_cli"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_asked_in_sql() {
    let world = of_all_logs().await;
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

    let programs = match duckdb() {
        Ok(programs) => programs,
        Err(why) => {
            let is_required = std::env::var_os(REQUIRED).is_some_and(|set| set == "1");
            assert!(!is_required, "{REQUIRED}=1, but DuckDB can't run: {why}");
            let left_out = format!("LEFT OUT, an export asked in SQL: {why}\n");
            let _ = std::io::stderr().write_all(left_out.as_bytes());
            return;
        }
    };
    let rows = |select: &str| {
        let (status, rows, error) = sql(select, &programs);
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
    let ago = Clock::system().now_ms() - 3_600_000;
    let recent =
        rows(&format!("SELECT count(*) AS n FROM events WHERE epoch_ms(\"recordedAt\") > {ago}"));
    assert_eq!(recent, json!([{ "n": 9 }]));
    let (status, _, error) = sql("SELECT nothing FROM ParcelPacked", &programs);
    assert!(status == 2 && error.contains("duckdb: Binder Error"), "{error}");
}
