//! Fuzz target: reads a table file of arbitrary bytes, except that its magic, version and checksums are valid.

#![no_main]

use libfuzzer_sys::fuzz_target;

mod tables;

fuzz_target!(|data: &[u8]| {
    if data.len() < 300 {
        return;
    }
    let mut bytes = data.to_vec();
    let end = bytes.len() - 8;
    bytes[..8].copy_from_slice(b"simtable");
    bytes[8..12].copy_from_slice(&3_u32.to_le_bytes());
    bytes[end..].copy_from_slice(b"simtable");
    if bytes[12] == 128 { tables::read::<u128>(bytes) } else { tables::read::<u64>(bytes) }
});
