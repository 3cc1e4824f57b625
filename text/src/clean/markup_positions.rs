//! Bit mask of the bytes in a text that may begin or end markup, or end a line.

use simstore::simd::{Kernel, dispatch};

/// Number of bytes of a text that one 64-bit word of [`MarkupPositions`] covers, one bit for each byte.
const BLOCK: usize = 64;

/// The positions of all line feeds and the characters `\`, `` ` ``, `[`, `]`, `<` and `&` in a text, as one bit for each byte.
#[derive(Default)]
pub(super) struct MarkupPositions {
    blocks: Vec<u64>,
}

impl MarkupPositions {
    /// Finds the characters in `text` that may begin or end markup, or end a line. Their positions replace those of the previous
    /// text.
    pub(super) fn find(&mut self, text: &str) {
        self.blocks.clear();
        dispatch(FindMarkup { bytes: text.as_bytes(), blocks: &mut self.blocks });
    }

    /// Returns the first marked position at or after `at`. If none is left, returns a position at or after the end of the text.
    #[inline]
    pub(super) fn next(&self, at: usize) -> usize {
        let mut block = at / BLOCK;
        let Some(&first) = self.blocks.get(block) else { return at };
        let mut markup = first & u64::MAX << (at % BLOCK);
        while markup == 0 {
            block += 1;
            let Some(&next) = self.blocks.get(block) else { break };
            markup = next;
        }
        block * BLOCK + if markup == 0 { 0 } else { markup.trailing_zeros() as usize }
    }
}

struct FindMarkup<'a> {
    bytes: &'a [u8],
    blocks: &'a mut Vec<u64>,
}

impl Kernel for FindMarkup<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let FindMarkup { bytes, blocks } = self;
        blocks.reserve(bytes.len().div_ceil(BLOCK));
        let (whole, rest) = bytes.as_chunks::<BLOCK>();
        blocks.extend(whole.iter().map(markup_mask));
        if !rest.is_empty() {
            let mut last = [0; BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            blocks.push(markup_mask(&last));
        }
    }
}

#[inline(always)]
fn markup_mask(block: &[u8; BLOCK]) -> u64 {
    let is_markup = |b: u8| {
        // `[`, `\` and `]` have consecutive codes.
        (b == b'\n') | (b == b'`') | (b.wrapping_sub(b'[') < 3) | (b == b'<') | (b == b'&')
    };
    crate::bits::mask_from_flags(&block.map(|b| u8::from(is_markup(b))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn next_is_the_next_sign(text in "([a-z .,é{]{0,80}|[\n\\\\`<&]|\\[|\\]|\\PC){0,9}") {
            let mut markup = MarkupPositions::default();
            markup.find("<".repeat(100).as_str());
            markup.find(&text);
            for at in 0..=text.len() {
                let expected = text.as_bytes()[at..].iter().position(|b| b"\n\\`[]<&".contains(b));
                let next = markup.next(at);
                match expected {
                    Some(distance) => prop_assert_eq!(next, at + distance),
                    None => prop_assert!(next >= text.len()),
                }
            }
        }
    }
}
