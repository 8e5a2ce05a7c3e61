//! The keys of personal data.
//!
//! A **subject** is a person whose data events hold. Each subject has a key. A personal value is sealed with the key of
//! its subject before it is stored. Forgetting a subject replaces the key by a fence. Then nobody can read the values,
//! wherever copies of them are, and no writer makes a new key.
//!
//! - The table of keys holds each subject's key, wrapped by a **branch key**. KMS wraps the branch keys; on one
//!   machine, a key in a file does. A warm function keeps keys for a time, so it seldom reads the table or calls KMS.
//! - A **blind key** makes tags of personal values: equal values have equal tags. Nobody can read a value from its tag
//!   without this key.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod cache;
mod crypto;
mod item;
mod layout;
mod record;
mod rotation;
mod stack_keys;
mod table;
mod vault;
mod wrap;

pub use layout::table_layout;
pub use record::Fence;
pub use rotation::{Purpose, Rotation};
pub use table::{ForgetError, KeyTable, READABLE_MS, Standing, WHY_BYTES_MAX};
pub use vault::KeyVault;
pub use wrap::Wrap;
pub use wrap::file::FileError;
pub use wrap::kms::{Kms, KmsError};
