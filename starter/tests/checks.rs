//! What every stack has to keep. If something is forgotten, one of these tests names it, with the line to write.

ringfence_testing::checks!(starter_stack::Shop);
