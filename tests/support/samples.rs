//! Sample documents for tests, the same on every run.

use std::collections::BTreeSet;

use simstore::{Builder, Fingerprint, Snapshot};

use super::random::Random;

impl Random {
    pub(crate) fn fingerprint<F: Fingerprint>(&mut self) -> F {
        let high = u128::from(self.next()) << 64;
        F::from_u128(high | u128::from(self.next()))
    }

    /// Returns a fingerprint in which `count` random bits are flipped, one after the other. The same bit may be
    /// flipped twice.
    pub(crate) fn flip<F: Fingerprint>(&mut self, fingerprint: F, count: u64) -> F {
        (0..count).fold(fingerprint, |x, _| x ^ F::bit_mask(self.below(u64::from(F::BITS)) as u32))
    }

    /// Returns `count` fingerprints in groups of 20, each at most four bits from the centre of its group.
    pub(crate) fn clustered<F: Fingerprint>(&mut self, count: usize) -> Vec<F> {
        let centres: Vec<F> = (0..count / 20 + 1).map(|_| self.fingerprint()).collect();
        (0..count)
            .map(|i| {
                let flips = self.below(5);
                self.flip(centres[i / 20], flips)
            })
            .collect()
    }
}

/// The pairs of fingerprint and id that a store is expected to have.
pub(crate) type PairModel<F> = BTreeSet<(F, u64)>;

/// A document: its fingerprint, its id, and its name if it has one.
pub(crate) type SampleDocument<F> = (F, u64, Option<String>);

/// Makes a document for each fingerprint. Ids ascend with gaps, and every third document has a name.
pub(crate) fn documents<F: Fingerprint>(random: &mut Random, fingerprints: &[F]) -> Vec<SampleDocument<F>> {
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

/// Inserts documents with a builder, and returns the finished store.
pub(crate) fn build<F: Fingerprint>(mut builder: Builder<F>, documents: &[SampleDocument<F>]) -> Snapshot<F> {
    for (fingerprint, id, name) in documents {
        match name {
            Some(name) => builder.insert_named(*fingerprint, *id, name).unwrap(),
            None => builder.insert(*fingerprint, *id).unwrap(),
        }
    }
    builder.finish().unwrap()
}
