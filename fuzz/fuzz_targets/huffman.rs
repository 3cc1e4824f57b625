//! Fuzz target: reads a table whose header has arbitrary code lengths of a Huffman code. The blocks were written with
//! another code.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simstore::{Codec, Fingerprint};

mod tables;

const MAX_CODE_BITS: u8 = 12;

/// Writes the code lengths of a complete code (Kraft sum 1) to `lengths`, which must be all 0. First takes each length of
/// `wanted` that does not raise the Kraft sum above 1. Then adds the lengths that make the code complete.
fn complete(wanted: &[u8], lengths: &mut [u8]) {
    let mut free = 1_u32 << MAX_CODE_BITS;
    let symbols = lengths.len();
    for (length, &byte) in lengths.iter_mut().zip(wanted).take(symbols - usize::from(MAX_CODE_BITS)) {
        let word = 1 << (MAX_CODE_BITS - byte % (MAX_CODE_BITS + 1));
        if byte % (MAX_CODE_BITS + 1) > 0 && word <= free {
            *length = byte % (MAX_CODE_BITS + 1);
            free -= word;
        }
    }
    for length in lengths.iter_mut().rev() {
        if free > 0 && *length == 0 {
            let bits = free.ilog2().min(u32::from(MAX_CODE_BITS) - 1);
            *length = MAX_CODE_BITS - bits as u8;
            free -= 1 << bits;
        }
    }
}

fn check<F: Fingerprint>(codec: Codec, is_complete: bool, span: u8, wanted: &[u8]) {
    let mut bytes = tables::encode_table::<F>(codec, 512, 200);
    let start = 36 + F::BITS as usize;
    // Code lengths in the header of a table of this codec.
    let symbols = if codec == Codec::AllDifferences { 13 * F::BITS } else { F::BITS };
    let mut lengths = vec![0; symbols as usize];
    if is_complete {
        complete(wanted, &mut lengths);
    } else {
        lengths.iter_mut().zip(wanted).for_each(|(length, &byte)| *length = byte % 16);
    }
    for (i, pair) in lengths.chunks(2).enumerate() {
        bytes[start + i] = pair[0] | pair[1] << 4;
    }
    bytes[20..22].copy_from_slice(&(1 + u16::from(span)).to_le_bytes());
    tables::read::<F>(bytes);
}

fuzz_target!(|data: &[u8]| {
    let [selector, span, wanted @ ..] = data else { return };
    let codec = [Codec::FirstDifference, Codec::Gap, Codec::AllDifferences][usize::from(selector % 3)];
    let is_complete = selector & 48 != 0;
    if selector & 64 == 0 {
        check::<u64>(codec, is_complete, *span, wanted);
    } else {
        check::<u128>(codec, is_complete, *span, wanted);
    }
});
