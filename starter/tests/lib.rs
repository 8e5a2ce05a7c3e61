//! The checks are in `checks.rs`.
