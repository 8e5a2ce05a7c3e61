//! The events and the value types.
