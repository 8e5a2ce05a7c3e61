//! The same cases on all three logs, in memory and on an embedded DynamoDB; the costs of the slices; and the page
//! that shows code and costs.

mod costs;
mod nested;
mod page;
mod same;
mod stack;
