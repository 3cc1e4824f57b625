//! Documents for tests, the same on every run.

use simstore::{Builder, Fingerprint, Snapshot};

/// SplitMix64: G. L. Steele Jr., D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn fingerprint<F: Fingerprint>(&mut self) -> F {
        let high = u128::from(self.next()) << 64;
        F::from_u128(high | u128::from(self.next()))
    }

    /// Fingerprints around few centres, each a few bits from its own.
    pub(crate) fn clustered<F: Fingerprint>(&mut self, count: usize) -> Vec<F> {
        let centres: Vec<F> = (0..count / 20 + 1).map(|_| self.fingerprint()).collect();
        (0..count)
            .map(|i| {
                let flips = self.below(5);
                let flip = |value: F, _| value ^ F::bit_mask(self.below(u64::from(F::BITS)) as u32);
                (0..flips).fold(centres[i / 20], flip)
            })
            .collect()
    }
}

/// A fingerprint, the id of its document, and the document's name if it has one.
pub(crate) type Document<F> = (F, u64, Option<String>);

/// Gives each fingerprint to a document: ids ascend with gaps, every third document has a name.
pub(crate) fn documents<F: Fingerprint>(random: &mut Random, fingerprints: &[F]) -> Vec<Document<F>> {
    let mut id = 0;
    let document = |(i, &fingerprint): (usize, &F)| {
        id += 1 + random.below(1000);
        (fingerprint, id, (i % 3 == 0).then(|| name(i)))
    };
    fingerprints.iter().enumerate().map(document).collect()
}

fn name(i: usize) -> String {
    match i % 5 {
        0 => format!("https://example.org/pages/{i}.html"),
        1 => format!("文档/第{i}页"),
        2 => format!("naïve café №{i} 🗎"),
        3 => format!("{i}: {}", "a long name, ".repeat(i % 40)),
        _ => String::new(),
    }
}

/// Fills and finishes a store.
pub(crate) fn build<F: Fingerprint>(mut builder: Builder<F>, documents: &[Document<F>]) -> Snapshot<F> {
    for (fingerprint, id, name) in documents {
        match name {
            Some(name) => builder.insert_named(*fingerprint, *id, name).unwrap(),
            None => builder.insert(*fingerprint, *id).unwrap(),
        }
    }
    builder.finish().unwrap()
}
