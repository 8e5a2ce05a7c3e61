//! The promises of every log, in memory and in a table. Each promise is one function, and runs on all logs through
//! [`Log`](ringfence_log::Log). Tests of one log are for its layout, and for features that only that log has.

mod aggregate;
mod dcb;
mod document;
