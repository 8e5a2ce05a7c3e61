//! Events from the images of the table's stream.

use ringfence_dynamo::Item;

use crate::item::decode;
use crate::{DecodeError, StoredEvent};

/// The event of a NEW_IMAGE, whoever wrote it; [`crate::Recorded::of`] types it by its store.
///
/// # Errors
/// The image is no event.
pub fn event_of_image(image: Item) -> Result<StoredEvent, DecodeError> {
    decode(image)
}
