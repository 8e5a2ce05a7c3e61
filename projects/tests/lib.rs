//! The tests are in `projects/`.
