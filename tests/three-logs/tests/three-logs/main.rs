//! The same cases on all three logs, in memory and on an embedded DynamoDB; what each costs; and the
//! page that shows both.

mod costs;
mod nested;
mod page;
mod same;
mod stack;
