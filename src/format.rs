//! The constants of the files that a store consists of. What they mean is written in `format-spec/`.

/// Newest version of the format that this crate reads, and the one that it writes.
pub(crate) const VERSION: u32 = 1;

/// First and last bytes of a table file.
pub(crate) const TABLE_MAGIC: [u8; 8] = *b"simtable";
/// First and last bytes of an id file.
pub(crate) const IDS_MAGIC: [u8; 8] = *b"simst-id";
/// First and last bytes of a name file.
pub(crate) const NAMES_MAGIC: [u8; 8] = *b"simnames";
/// First and last bytes of a manifest.
pub(crate) const MANIFEST_MAGIC: [u8; 8] = *b"simstore";

/// Smallest and largest block of a table, in bytes; sizes are powers of two.
pub(crate) const BLOCK_SIZES: std::ops::RangeInclusive<u32> = 256..=65536;
/// Offset of the number of fingerprints in a block.
pub(crate) const BLOCK_COUNT: usize = 4;
/// Offset of the codec's width in a block.
pub(crate) const BLOCK_WIDTH: usize = 6;
/// Offset of the first fingerprint in a block.
pub(crate) const BLOCK_FIRST: usize = 8;
/// The most fingerprints of a block.
pub(crate) const MAX_BLOCK_COUNT: usize = u16::MAX as usize;
/// The most fingerprints from one restart point to the next.
pub(crate) const MAX_SPAN: u16 = 256;
