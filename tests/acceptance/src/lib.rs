//! Tests of the whole, in `tests/`.
