//! Events from the images of the table's stream.

use ringfence_aws::Item;
use ringfence_core::{Catalog, SequencedEvent};

use crate::item::{self, DecodeError};

/// A NEW_IMAGE of the stream that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("the image is not an event")]
pub struct ImageError(#[source] DecodeError);

/// The event of a NEW_IMAGE; `None` for any other item, such as a fence or a command item.
///
/// # Errors
/// The image has an event type, but is not a whole event.
pub fn event_of_image(image: Item) -> Result<Option<SequencedEvent>, ImageError> {
    if item::event_type(&image).is_none() {
        return Ok(None);
    }
    let no_types = Catalog::compose([]).expect("nothing contradicts itself");
    item::decode(&no_types, image).map(Some).map_err(ImageError)
}
