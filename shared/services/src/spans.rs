//! forward-spans: sends the spans of the functions' log lines to a collector, as OTLP over HTTP.
//!
//! The line of a command, or of a run that handles a batch, is a span already: it has ids, a time and a duration. So no
//! function has a tracer, a connection or a permission for it. A subscription of the log group brings the lines here.
//! [`TraceSpan`] is a span of OTLP, read from a line or made of events.

mod batch;
mod forward;
mod line;
mod otlp;

pub use forward::ForwardSpans;
pub use otlp::{TraceSpan, document};
