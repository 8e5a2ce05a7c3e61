//! Snapshot items: states that slices keep (rule 13).

use aws_sdk_dynamodb::types::Put;
use ringfence_aws::Item;
use ringfence_core::{Envelope, LogError, limits};

use crate::item::{key, number, text};
use crate::log::DcbLog;
use crate::record::EXPIRES_AT;

/// How long a snapshot is kept if no newer one replaces it. Then the next command reads all events once more.
const KEPT_SECONDS: u64 = 90 * 24 * 3_600;
const SNAPSHOT: &str = "snapshot";
const NOT_KEPT: &str = "a snapshot is not kept; the next reader reads more events";

/// The text of the snapshot item with this id.
pub(crate) async fn read(
    log: &DcbLog,
    id: &str,
    envelope: &Envelope,
) -> Result<Option<String>, LogError> {
    let found = log.retry(envelope).run(|| log.table.get(key(id.to_owned(), 0), false)).await;
    let item = found.map_err(|gave_up| gave_up.during("reading a snapshot"))?;
    Ok(item.and_then(|mut item| item.remove(SNAPSHOT)?.as_s().ok().cloned()))
}

/// Sends the item once, while its caller continues. If two handlers send one, the later item stays, which may be the
/// older state.
pub(crate) fn keep(log: &DcbLog, id: String, snapshot: String) {
    if let Err(failure) = limits::snapshot(&snapshot) {
        tracing::warn!(%failure, id, "{NOT_KEPT}");
        return;
    }
    let mut item: Item = key(id, 0);
    let expires = log.clock.now_ms() / 1_000 + KEPT_SECONDS;
    item.extend([(SNAPSHOT.to_owned(), text(snapshot)), (EXPIRES_AT.to_owned(), number(expires))]);
    let table = log.table.clone();
    tokio::spawn(async move {
        let put = Put::builder().table_name(table.name()).set_item(Some(item)).build();
        if let Err(failure) = table.overwrite(put.expect("table and item are set")).await {
            tracing::warn!(%failure, "{NOT_KEPT}");
        }
    });
}
