//! Compresses bytes in each compression that simstore can read.

use std::io::Write;

use super::gzip::gzip;

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

pub(crate) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A function that compresses bytes.
pub(crate) type Compress = fn(&[u8]) -> Vec<u8>;

/// The file extension and the compressing function of each compression.
pub(crate) const COMPRESSIONS: [(&str, Compress); 4] =
    [(".gz", gzip), (".zst", zstd), (".bz2", bzip2), (".xz", xz)];
