//! Helpers of the fuzz targets for tables: encode a table, replace its blocks, and read it by every method of the public
//! API.
#![allow(dead_code, reason = "each target uses some of the functions")]

use simstore::raw::{Bytes, Table};
use simstore::{Codec, Fingerprint};

#[path = "../../../tests/support/seal.rs"]
pub mod seal;

/// Returns the bytes of a valid table file with about `count` fingerprints, which have different numbers of leading zeros.
pub fn encode_table<F: Fingerprint>(codec: Codec, block_size: u32, count: u32) -> Vec<u8> {
    let plan = simstore::plan::Plan::<F>::named("probe-2", 3).unwrap();
    let mut fingerprints: Vec<F> = (1..=u64::from(count))
        .map(|i| {
            let low = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            F::from_u128(u128::from(low.rotate_left(32)) << 64 | u128::from(low)) >> (i as u32 % 5)
        })
        .collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    Table::encode(&fingerprints, &plan.tables()[1], codec, Some(block_size)).unwrap()
}

/// Returns a copy of a table file with `block` as its only block. The number of fingerprints of the table is taken from the
/// header of the block. The block index has one entry, which states that the last fingerprint of the block is `last`.
pub fn with_block<F: Fingerprint>(table: &[u8], block: &[u8], last: F) -> Vec<u8> {
    let blocks_offset = u32::from_le_bytes(table[24..28].try_into().unwrap()) as usize;
    let mut bytes = table[..blocks_offset].to_vec();
    let count = u64::from(u16::from_le_bytes(block[4..6].try_into().unwrap()));
    bytes[28..36].copy_from_slice(&count.to_le_bytes());
    bytes.extend_from_slice(block);
    let index = bytes.len();
    bytes.resize(index + F::BYTES, 0);
    last.write_le(&mut bytes[index..]);
    bytes.extend_from_slice(&1_u64.to_le_bytes());
    bytes.extend_from_slice(&(block.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&[0; 16]);
    bytes.extend_from_slice(&table[..8]);
    bytes
}

/// Corrects the checksums of a table file, opens the table, and calls every method that reads it. Does nothing if the
/// table cannot be opened.
pub fn read<F: Fingerprint>(mut bytes: Vec<u8>) {
    seal::seal_file(".table", &mut bytes);
    let Ok(table) = Table::<F>::open("fuzz".as_ref(), Bytes::from(bytes)) else { return };
    let mut values = vec![F::ZERO, F::MAX];
    for block in 0..table.blocks() {
        if let Ok(info) = table.block_info(block) {
            values.extend([info.first, info.last]);
        }
        let before = values.len();
        if table.decode_block(block, &mut values).is_err() {
            values.truncate(before);
        }
        // The count of a block is 16 bits wide.
        assert!(values.len() - before <= 65535);
    }
    let scanned = table.scan().filter(Result::is_ok).count();
    assert!(scanned <= table.blocks() * 65535);
    table.verify(|_| std::ops::ControlFlow::Continue(()), |_| ()).unwrap();
    let step = values.len() / 16 + 1;
    for &value in values.iter().step_by(step) {
        for (low, high) in [(value, value), (value, F::MAX), (value, value | F::suffix_mask(F::BITS / 2))] {
            let _ = table.visit(low, high, |_, i, x| assert!(i < 65535 && low <= x && x <= high));
        }
        for flips in 0..3 {
            let _ = table.probe(value, flips, |_| ());
        }
    }
}
