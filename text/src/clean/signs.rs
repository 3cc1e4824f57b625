//! Positions of the signs that may begin markup.

use simstore::processor::{Work, dispatch};

/// Bytes for each word of [`Signs`].
const BLOCK: usize = 64;

/// The positions of the line feeds, and of the signs `\`, `` ` ``, `[`, `]`, `<` and `&` in a text: one bit for each byte.
#[derive(Default)]
pub(super) struct Signs {
    blocks: Vec<u64>,
}

impl Signs {
    /// Finds the signs of a text.
    pub(super) fn find(&mut self, text: &str) {
        self.blocks.clear();
        dispatch(Find { bytes: text.as_bytes(), blocks: &mut self.blocks });
    }

    /// Returns the position of the next sign at or after a position, or the first position of the blocks after the text.
    #[inline]
    pub(super) fn next(&self, at: usize) -> usize {
        let mut block = at / BLOCK;
        let Some(&first) = self.blocks.get(block) else { return at };
        let mut signs = first & u64::MAX << (at % BLOCK);
        while signs == 0 {
            block += 1;
            let Some(&next) = self.blocks.get(block) else { break };
            signs = next;
        }
        block * BLOCK + if signs == 0 { 0 } else { signs.trailing_zeros() as usize }
    }
}

struct Find<'a> {
    bytes: &'a [u8],
    blocks: &'a mut Vec<u64>,
}

impl Work for Find<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Find { bytes, blocks } = self;
        blocks.reserve(bytes.len().div_ceil(BLOCK));
        let (whole, rest) = bytes.as_chunks::<BLOCK>();
        blocks.extend(whole.iter().map(mask));
        if !rest.is_empty() {
            let mut last = [0; BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            blocks.push(mask(&last));
        }
    }
}

#[inline(always)]
fn mask(block: &[u8; BLOCK]) -> u64 {
    let is_sign = |b: u8| {
        // `[`, `\` and `]` follow one another.
        (b == b'\n') | (b == b'`') | (b.wrapping_sub(b'[') < 3) | (b == b'<') | (b == b'&')
    };
    crate::bits::mask(&block.map(|b| u8::from(is_sign(b))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn next_is_the_next_sign(text in "([a-z .,é{]{0,80}|[\n\\\\`<&]|\\[|\\]|\\PC){0,9}") {
            let mut signs = Signs::default();
            signs.find("<".repeat(100).as_str());
            signs.find(&text);
            for at in 0..=text.len() {
                let expected = text.as_bytes()[at..].iter().position(|b| b"\n\\`[]<&".contains(b));
                let next = signs.next(at);
                match expected {
                    Some(distance) => prop_assert_eq!(next, at + distance),
                    None => prop_assert!(next >= text.len()),
                }
            }
        }
    }
}
