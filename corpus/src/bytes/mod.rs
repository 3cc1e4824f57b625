//! Bytes: where they come from, unpacked and in UTF-8, and how many at once.

pub(crate) mod compression;
pub(crate) mod compressor;
pub(crate) mod encoding;
pub(crate) mod input;
pub(crate) mod limit;
pub(crate) mod opening;
pub(crate) mod pipes;
pub(crate) mod section;
pub(crate) mod transcode;
