//! The key of a delivery, as a receiver sees it.

use sha2::{Digest, Sha256};

/// 32 digits that follow from the key: the same each time that the effect is carried out. They fit headers and tags.
pub(crate) fn id(key: &str) -> String {
    Sha256::digest(key).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
