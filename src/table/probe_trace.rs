//! Counts the work of a query in one table, for tools that show where a query looked.

use super::reader::Table;
use crate::error::Result;
use crate::fingerprint::Fingerprint;

/// Work of a query in one table. The counts are of the plan's probes: the fast search reads less if very many fingerprints share a
/// prefix, and tables with prefix lines test several probes at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeTrace {
    /// Number of probes: prefixes that the query looks up.
    pub probes: u64,
    /// Number of probes that the table's Bloom filter ended. 0 if the table has no filter.
    pub filtered: u64,
    /// Number of probes that found no fingerprint with their prefix.
    pub empty: u64,
    /// Number of different blocks that have a fingerprint with the prefix of a probe.
    pub blocks: u64,
    /// Number of fingerprints with the prefix of a probe. The query compares them.
    pub compared: u64,
    /// Number of fingerprints within the distance. Several tables may find the same one.
    pub found: u64,
}

impl<F: Fingerprint> Table<F> {
    /// Counts the work of a query in this table. Takes longer than the query itself.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a block is damaged.
    pub fn trace_probes(&self, query: F, distance: u32) -> Result<ProbeTrace> {
        let query = self.permute(query);
        let (plan, masks) = (&self.header().plan, &self.probe_masks);
        let filter = self.filter().map(|filter| (filter, filter.query_bits(query)));
        let mut trace = ProbeTrace::default();
        let (mut blocks, mut decoded) = (Vec::new(), Vec::new());
        for (i, &mask) in masks.masks.iter().enumerate() {
            if distance < plan.flips && mask.count_ones() > distance {
                continue;
            }
            trace.probes += 1;
            let full = i.checked_sub(masks.partial_len);
            if filter.zip(full).is_some_and(|((filter, bits), full)| !filter.may_contain(bits, full)) {
                trace.filtered += 1;
                continue;
            }
            let prefix = F::prefix_mask(if full.is_some() { plan.prefix_bits } else { masks.flipped_bits });
            let low = (query ^ mask) & prefix;
            let high = low | !prefix;
            let compared_before = trace.compared;
            for block in self.index.find(low)..self.blocks().min(self.index.find(high) + 1) {
                decoded.clear();
                self.decode_block(block, &mut decoded)?;
                let from = decoded.partition_point(|&value| value < low);
                let to = decoded.partition_point(|&value| value <= high);
                let candidates = decoded.get(from..to).unwrap_or_default();
                if !candidates.is_empty() {
                    blocks.push(block);
                }
                trace.compared += candidates.len() as u64;
                trace.found +=
                    candidates.iter().filter(|&&value| query.distance(value) <= distance).count() as u64;
            }
            trace.empty += u64::from(trace.compared == compared_before);
        }
        blocks.sort_unstable();
        blocks.dedup();
        trace.blocks = blocks.len() as u64;
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;
    use crate::{BuildOptions, Builder};

    /// The counts of each table against the plain loop over its fingerprints, with and without a filter.
    #[test]
    fn counts_are_those_of_the_plain_loop() {
        for codec in [Codec::FirstDifference, Codec::EliasFano, Codec::PrefixLines] {
            let folder = tempfile::tempdir().unwrap();
            let options = BuildOptions { codec, distance: 3, ..BuildOptions::default() };
            let mut builder = Builder::<u64>::create(&folder.path().join("store"), options).unwrap();
            // Spread numbers with some equal bits.
            let spread = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !0xff_0000;
            let numbers: Vec<u64> = (1..5000).map(spread).collect();
            numbers.iter().zip(0..).for_each(|(&number, id)| builder.insert(number, id).unwrap());
            let store = builder.finish().unwrap();
            let segment = &store.segments()[0];
            for is_filtered in [false, true] {
                if is_filtered {
                    segment.make_filters().unwrap();
                }
                for &number in &numbers[..20] {
                    let query = number ^ 0b101;
                    let found: u64 = segment.tables().iter().map(|table| check(table, query, &numbers)).sum();
                    assert!(found >= 1, "{codec}: the number within 2 bits");
                }
            }
        }
    }

    /// Checks the counts of a table, and returns the number of fingerprints that it finds within 3 bits.
    fn check(table: &Table<u64>, query: u64, numbers: &[u64]) -> u64 {
        for distance in [0, 3] {
            let trace = table.trace_probes(query, distance).unwrap();
            let plan = &table.header().plan;
            let permuted = table.permute(query);
            let flips = plan.flips.min(distance);
            let prefix = u64::prefix_mask(plan.prefix_bits);
            let is_candidate = |value: u64| ((value ^ permuted) & prefix).count_ones() <= flips;
            let mut all: Vec<u64> = numbers.iter().map(|&number| table.permute(number)).collect();
            all.sort_unstable();
            all.dedup();
            let near = all.iter().filter(|&&value| is_candidate(value));
            let found =
                near.clone().filter(|&&value| (value ^ permuted).count_ones() <= distance).count() as u64;
            // A partial probe also compares fingerprints with other differing bits after the flipped ones.
            assert!(trace.found >= found && trace.compared >= near.count() as u64, "{trace:?}");
            assert!(trace.empty + trace.filtered <= trace.probes && trace.blocks <= trace.compared);
            let mut visited = 0;
            table.probe(query, distance, |_| visited += 1).unwrap();
            assert_eq!(trace.found, visited, "{:?}: {trace:?}", table.header().codec);
        }
        table.trace_probes(query, 3).unwrap().found
    }
}
