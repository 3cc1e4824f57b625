//! Describes one block of a table, with its fingerprints.

use serde::Serialize;
use simstore::raw::{Coding, Table};
use simstore::{Codec, Fingerprint, Result};

/// Place, size and fingerprints of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockDescription {
    /// Index of the block's segment, from 0.
    pub segment: usize,
    /// Index of the table in its segment, from 0.
    pub table: usize,
    /// Index of the block in its table, from 0.
    pub block: usize,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Size, in bytes.
    pub bytes: usize,
    /// Number of fingerprints.
    pub fingerprints: usize,
    /// Number of bits of a restart point. For codec `elias-fano`: number of lower bits of each fingerprint. For codec
    /// `prefix-lines`: number of bits of each fingerprint after its prefix.
    pub width: u32,
    /// First permuted fingerprint, in hexadecimal digits.
    pub first: String,
    /// Last permuted fingerprint, in hexadecimal digits.
    pub last: String,
    /// Fingerprints, in the order of the table.
    pub values: Vec<CodedFingerprint>,
}

/// A fingerprint of a block, and its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodedFingerprint {
    /// Permuted fingerprint, in hexadecimal digits.
    pub permuted: String,
    /// Fingerprint, in hexadecimal digits.
    pub original: String,
    /// Bit by which the fingerprint is counted in [`Table::differing_bits`]; `None` for the first fingerprint of the block, and
    /// for codec `all-differences`.
    pub differing_bit: Option<u32>,
    /// Code of the fingerprint. `None` for a restart point, and for codecs without a Huffman code.
    pub coded: Option<CodeDescription>,
}

/// Code of a fingerprint. [`Coding`] explains the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CodeDescription {
    /// Position of the coded bit, which has the value 2^h. See [`Coding::h`].
    pub h: u32,
    /// Number of differing bits below bit `h`. See [`Coding::differing`].
    pub differing: Option<u32>,
    /// Number of places before the predecessor. See [`Coding::back`].
    pub back: u32,
}

/// Decodes and describes a block. The last argument has the indexes of the segment, the table and the block.
///
/// # Errors
/// [`Error::BadArgument`](simstore::Error::BadArgument) if the table has no block with this index,
/// [`Error::Corrupt`](simstore::Error::Corrupt) if the block is damaged.
pub fn describe_block<F: Fingerprint>(
    table: &Table<F>,
    [segment, table_index, block]: [usize; 3],
) -> Result<BlockDescription> {
    let info = table.block_info(block)?;
    let mut decoded = Vec::new();
    table.decode_block(block, &mut decoded)?;
    let header = table.header();
    let has_differing_bits = header.codec != Codec::AllDifferences;
    let mut previous: Option<F> = None;
    let values = decoded.iter().zip(table.codings(block)?).map(|(&permuted, coding)| CodedFingerprint {
        permuted: permuted.to_hex(),
        original: header.plan.permutation.invert(permuted).to_hex(),
        differing_bit: previous
            .replace(permuted)
            .filter(|_| has_differing_bits)
            .map(|previous| table.differing_bit(previous, permuted)),
        coded: coding.map(|Coding { h, differing, back }| CodeDescription { h, differing, back }),
    });
    Ok(BlockDescription {
        segment,
        table: table_index,
        block,
        offset: info.offset,
        bytes: info.len,
        fingerprints: info.fingerprints,
        width: info.width,
        first: info.first.to_hex(),
        last: info.last.to_hex(),
        values: values.collect(),
    })
}
