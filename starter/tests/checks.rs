//! The rules of every stack. If something is missing, a test names it, with the line to write.

ringfence_testing::checks!(starter_stack::Contexts);
