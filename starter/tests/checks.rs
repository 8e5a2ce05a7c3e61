//! What every stack has to keep. What is forgotten is named by one of these tests, with the line to write.

ringfence_testing::checks!(starter_stack::Shop);
