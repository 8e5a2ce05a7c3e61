//! Readers of lanes: reactors and ordered automations. The run that reads the index for the views notifies them of new
//! events.
//!
//! They move together with the views, as one more reader without a view. Its place moves past an event after the
//! readers of that event were notified. So if a run breaks off, they may be notified twice, but not never. If a
//! notification fails, the reader leaves the views, which go on; before it joins them again, all readers of lanes are
//! notified.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::timeout;

/// How long the views wait for a notification. After that they go on without it.
const NOTIFY_TIME_MAX: Duration = Duration::from_secs(1);

/// The reader that moves together with the views in place of all readers of lanes. No view has such a name.
pub(crate) const LANES: &str = "$Lanes";

/// A reactor or an ordered automation.
#[derive(Clone, Debug)]
pub struct LaneReader {
    /// Its name.
    pub name: &'static str,
    /// The types of events that it reads.
    pub types: Vec<&'static str>,
}

/// Notifies the readers of these names, or says why it can't.
pub type Notify =
    Arc<dyn Fn(BTreeSet<&'static str>) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The readers of lanes of a stack that has any.
#[derive(Clone)]
pub(crate) struct Lanes {
    pub(crate) readers: Vec<LaneReader>,
    pub(crate) notify: Notify,
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lanes").field(&self.readers).finish()
    }
}

impl Lanes {
    /// The names of all readers.
    pub(crate) fn names(&self) -> BTreeSet<&'static str> {
        self.readers.iter().map(|reader| reader.name).collect()
    }

    /// The names of those that read events of a type.
    pub(crate) fn of<'l>(&'l self, event_type: &'l str) -> impl Iterator<Item = &'static str> + 'l {
        let reads = move |reader: &&LaneReader| reader.types.contains(&event_type);
        self.readers.iter().filter(reads).map(|reader| reader.name)
    }

    /// Notifies readers, if there are any.
    pub(crate) async fn notify(&self, names: BTreeSet<&'static str>) -> Result<(), String> {
        if names.is_empty() {
            return Ok(());
        }
        let notified = timeout(NOTIFY_TIME_MAX, (self.notify)(names)).await;
        notified.unwrap_or_else(|_| Err(format!("no answer within {NOTIFY_TIME_MAX:?}")))
    }
}
