//! Code lengths in the header of a table, whose blocks were written with another code.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simstore::{Codec, Fingerprint};

mod tables;

const LONGEST: u8 = 12;

/// Lengths that fill the code: as many of those asked for as there is room for, then what is missing.
fn complete(asked: &[u8], lengths: &mut [u8]) {
    let mut room = 1_u32 << LONGEST;
    let symbols = lengths.len();
    for (length, &byte) in lengths.iter_mut().zip(asked).take(symbols - usize::from(LONGEST)) {
        let word = 1 << (LONGEST - byte % (LONGEST + 1));
        if byte % (LONGEST + 1) > 0 && word <= room {
            *length = byte % (LONGEST + 1);
            room -= word;
        }
    }
    for length in lengths.iter_mut().rev() {
        if room > 0 && *length == 0 {
            let bits = room.ilog2().min(u32::from(LONGEST) - 1);
            *length = LONGEST - bits as u8;
            room -= 1 << bits;
        }
    }
}

fn check<F: Fingerprint>(codec: Codec, is_complete: bool, span: u8, asked: &[u8]) {
    let mut bytes = tables::sound::<F>(codec, 512, 200);
    let start = 36 + F::BITS as usize;
    // As many as the header of its tables has room for.
    let symbols = if codec == Codec::AllDifferences { 13 * F::BITS } else { F::BITS };
    let mut lengths = vec![0; symbols as usize];
    if is_complete {
        complete(asked, &mut lengths);
    } else {
        lengths.iter_mut().zip(asked).for_each(|(length, &byte)| *length = byte % 16);
    }
    for (i, pair) in lengths.chunks(2).enumerate() {
        bytes[start + i] = pair[0] | pair[1] << 4;
    }
    bytes[20..22].copy_from_slice(&(1 + u16::from(span)).to_le_bytes());
    tables::read::<F>(bytes);
}

fuzz_target!(|data: &[u8]| {
    let [selector, span, asked @ ..] = data else { return };
    let codec = [Codec::FirstDifference, Codec::Gap, Codec::AllDifferences][usize::from(selector % 3)];
    let is_complete = selector & 48 != 0;
    if selector & 64 == 0 {
        check::<u64>(codec, is_complete, *span, asked);
    } else {
        check::<u128>(codec, is_complete, *span, asked);
    }
});
