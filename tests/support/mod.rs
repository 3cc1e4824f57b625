//! Code for several tests: a simulated disk, sample documents, streams of writes, checksums of changed files, random
//! numbers, the folder of the format's specification.

pub(crate) mod disk;
pub(crate) mod random;
pub(crate) mod samples;
pub(crate) mod seal;
pub(crate) mod spec_folder;
pub(crate) mod write_stream;
