//! Fuzz target: reads a table file that has a valid header and one block of arbitrary bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simstore::{Codec, Fingerprint};

mod tables;

fn check<F: Fingerprint>(codec: Codec, block: &[u8]) {
    let block_size = (block.len().next_power_of_two() as u32).clamp(256, 65536);
    let block = &block[..block.len().min(block_size as usize)];
    let last = F::read_le(&block[block.len() - F::BYTES..]);
    let table = tables::encode_table::<F>(codec, block_size, 300);
    tables::read::<F>(tables::with_block(&table, block, last));
    tables::read::<F>(tables::with_block(&table, block, F::MAX));
}

fuzz_target!(|data: &[u8]| {
    let Some((&selector, block)) = data.split_first() else { return };
    if block.len() < 24 {
        return;
    }
    let codec = Codec::ALL[usize::from(selector) % Codec::ALL.len()];
    if selector < 128 { check::<u64>(codec, block) } else { check::<u128>(codec, block) }
});
