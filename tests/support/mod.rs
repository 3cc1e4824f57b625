//! What several tests need: a simulated disk, sample documents, what a writer does, checksums made right, random numbers.

pub(crate) mod disk;
pub(crate) mod write_stream;
pub(crate) mod random;
pub(crate) mod samples;
pub(crate) mod seal;
