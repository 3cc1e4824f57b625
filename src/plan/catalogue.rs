//! Catalogue of the named plans for the tables of a segment.

use super::shape::{PlanShape, all_bits, parts, table};
use super::{MAX_TABLES, Plan, TablePlan};
use crate::error::{Error, Result, excerpt};
use crate::fingerprint::Fingerprint;

/// Covering designs, which define the `cover-N` plans. A design has the number of bit blocks (parts of the bits) into
/// which a fingerprint is cut, and for each table, the set of the bit blocks outside the table's prefix. Any three
/// bit blocks lie inside one of these sets. So for any three differing bits, at least one table has none of them in
/// its prefix.
///
/// A set has one binary digit per bit block, the first bit block leftmost. The digit is 1 if the bit block is
/// outside the prefix.
///
/// The designs with 5 to 10 tables were found by local search. The sets of the design with 11 tables are the
/// quadratic non-residues mod 11 and 0, shifted by 0 to 10. The sets of the designs with 14 and 15 tables are the
/// planes of AG(3,2) and of PG(3,2). See D. M. Gordon, O. Patashnik, G. Kuperberg, "New constructions for covering
/// designs", J. Combin. Des. 3 (1995).
const COVERS: [(u32, &[u64]); 8] = [
    (7, &[0b1111001, 0b1101101, 0b1101011, 0b1011110, 0b0110111]),
    (6, &[0b111001, 0b110101, 0b110011, 0b101110, 0b011110, 0b001111]),
    (9, &[0b111100011, 0b111011001, 0b111010101, 0b100111110, 0b010110111, 0b010101111, 0b001111110]),
    (8, &[0b11100110, 0b11010011, 0b11001101, 0b10111010, 0b10110101, 0b01111100, 0b01101011, 0b00011111]),
    (
        10,
        &[
            0b1110100110, 0b1101110001, 0b1101001110, 0b1011101100, 0b1010011101, 0b1000110111, 0b0111001011,
            0b0110111001, 0b0101010111, 0b0011111010,
        ],
    ),
    (
        11,
        &[
            0b11101101000, 0b11011010001, 0b11010001110, 0b10110100011, 0b10100011101, 0b10001110110,
            0b01110110100, 0b01101000111, 0b01000111011, 0b00111011010, 0b00011101101,
        ],
    ),
    (
        8,
        &[
            0b11110000, 0b11001100, 0b11000011, 0b10101010, 0b10100101, 0b10011001, 0b10010110, 0b01101001,
            0b01100110, 0b01011010, 0b01010101, 0b00111100, 0b00110011, 0b00001111,
        ],
    ),
    (
        15,
        &[
            0b111111100000000, 0b111000011110000, 0b111000000001111, 0b100110011001100, 0b100110000110011,
            0b100001111000011, 0b100001100111100, 0b010101010101010, 0b010101001010101, 0b010010110100101,
            0b010010101011010, 0b001100110011001, 0b001100101100110, 0b001011010010110, 0b001011001101001,
        ],
    ),
];
/// Maximum distance of the covering designs of [`COVERS`], in bits: they find all neighbours within it.
const COVER_DISTANCE: u32 = 3;
/// Maximum distance of the `mixed` plans, in bits: they find all neighbours within it. Of three differing bits, at most
/// one is in the first table's prefix, or at most one is outside it. In the first case, the first table finds the
/// neighbour by a flip. In the second case, one of the other tables finds it.
const MIXED_DISTANCE: u32 = 3;
/// Numbers of tables of the `mixed` plans that [`names`] lists. Plans with other numbers of tables are valid too, but
/// not listed.
const MIXED_TABLES: std::ops::RangeInclusive<usize> = 3..=4;
/// Lengths of the first table's prefix, in bits, in the `mixed` plans that [`names`] lists. Plans with other lengths are
/// valid too, but not listed.
const MIXED_PREFIXES: [u32; 5] = [18, 20, 22, 24, 26];
/// Maximum length, in bits, of a prefix with flips, in `probe` and `mixed` plans. More bits than log2 of the number of
/// fingerprints have no benefit.
const MAX_PROBE_PREFIX: usize = 32;

/// Returns the names of the plans whose tables find all fingerprints within a distance, smallest number of tables
/// first.
///
/// - `scan`: one table; each query reads the whole table.
/// - `probe-M`: M tables with disjoint prefixes; look-ups (probes) flip prefix bits (multi-index hashing).
/// - `paper-N`: the plan with N tables in the paper by Manku, Jain and Das Sarma (WWW 2007). At distance k, the
///   paper has four plans. Three of them cut a fingerprint into b = k+1, k+2 or k+3 blocks, and have a table for
///   each choice of b - k blocks as the prefix. The fourth plan has two levels: it cuts a fingerprint into k+1
///   blocks, and for each block, it cuts the bits outside it into k+1 parts. A prefix is one block and one of
///   these parts.
/// - `cover-N`: N tables by a covering design, for distances up to 3.
/// - `mixed-N-P`: one table with a prefix of P bits and probes that may flip one of them, and N - 1 tables
///   without flips. The other bits are cut into N - 1 parts, and each of these tables has all parts but one
///   as its prefix. For distances up to 3. Makes fewer probes than `probe-2`, with one or two more tables. P
///   should be about log2 of the number of fingerprints.
///
/// Blocks consist of contiguous bits, and have nearly equal numbers of bits. The prefix of a table that an older
/// version wrote may have other bits, or another length, than the name of the plan says. Such a table stays
/// readable, because each table file contains its own permutation.
pub fn names<F: Fingerprint>(distance: u32) -> Vec<String> {
    let mut plans: Vec<(usize, String)> = vec![(0, "scan".to_string())];
    plans.extend((1..=distance).map(|tables| (tables as usize, format!("probe-{tables}"))));
    plans.extend(paper_sizes(distance).iter().map(|&(tables, _)| (tables, format!("paper-{tables}"))));
    if distance <= COVER_DISTANCE {
        plans.extend(COVERS.iter().map(|(_, sets)| (sets.len(), format!("cover-{}", sets.len()))));
    }
    if distance == MIXED_DISTANCE {
        let mixed = MIXED_TABLES.flat_map(|tables| MIXED_PREFIXES.map(move |bits| (tables, bits)));
        plans.extend(mixed.map(|(tables, bits)| (tables, format!("mixed-{tables}-{bits}"))));
    }
    plans.retain(|&(tables, _)| tables <= MAX_TABLES);
    plans.sort();
    plans.dedup();
    plans.into_iter().map(|(_, name)| name).collect()
}

/// Returns the `paper-N` plans for a distance (see [`names`]), each as (number of tables, number of bit blocks into
/// which a fingerprint is cut). One of these plans cuts the bit blocks again: it has 0 as the second number.
fn paper_sizes(distance: u32) -> Vec<(usize, u32)> {
    let k = distance as usize;
    let mut sizes = vec![(k + 1, distance + 1), ((k + 1) * (k + 2) / 2, distance + 2)];
    sizes.push(((k + 1) * (k + 2) * (k + 3) / 6, distance + 3));
    if sizes.iter().all(|size| size.0 != (k + 1) * (k + 1)) {
        sizes.push(((k + 1) * (k + 1), 0));
    }
    sizes.dedup_by_key(|size| size.0);
    sizes
}

/// Parsed name of a plan, such as `paper-10`. A plan of this name may exist only for some widths and distances.
#[derive(Clone, Copy)]
pub(super) enum PlanName {
    Scan,
    Probe { tables: usize },
    Paper { tables: usize },
    Cover { tables: usize },
    Mixed { tables: usize, prefix_bits: usize },
}

impl PlanName {
    pub(super) fn parse(text: &str) -> Option<PlanName> {
        if text == "scan" {
            return Some(PlanName::Scan);
        }
        let (family, numbers) = text.split_once('-')?;
        let (tables, prefix_bits) = match numbers.split_once('-') {
            Some((tables, bits)) => (tables, Some(bits.parse().ok()?)),
            None => (numbers, None),
        };
        let tables = tables.parse().ok().filter(|tables| (1..=MAX_TABLES).contains(tables))?;
        match (family, prefix_bits) {
            ("probe", None) => Some(PlanName::Probe { tables }),
            ("paper", None) => Some(PlanName::Paper { tables }),
            ("cover", None) => Some(PlanName::Cover { tables }),
            ("mixed", Some(prefix_bits)) => Some(PlanName::Mixed { tables, prefix_bits }),
            _ => None,
        }
    }
}

/// Creates the tables of the plan with the given name. Returns `None` if the name is invalid, or if no plan of this
/// name exists for the distance.
fn tables<F: Fingerprint>(name: &str, distance: u32) -> Result<Option<Vec<TablePlan<F>>>> {
    let Some(name) = PlanName::parse(name) else { return Ok(None) };
    let all = all_bits::<F>();
    let even = |shape: PlanShape| shape.tables(&parts(&all, shape.blocks));
    let tables = match name {
        PlanName::Scan => Some(vec![table(&[], 0)?]),
        PlanName::Probe { tables } if tables <= distance as usize + 1 => {
            let mut blocks = parts(&all, tables);
            blocks.iter_mut().for_each(|block| block.truncate(MAX_PROBE_PREFIX));
            Some(PlanShape::disjoint(tables as u32, distance).tables(&blocks)?)
        }
        PlanName::Mixed { tables, prefix_bits }
            if distance <= MIXED_DISTANCE && tables > 2 && (1..=MAX_PROBE_PREFIX).contains(&prefix_bits) =>
        {
            let (flipped, rest) = all.split_at(prefix_bits);
            let blocks = [vec![flipped.to_vec()], parts(rest, tables - 1)].concat();
            Some(PlanShape::mixed(tables).tables(&blocks)?)
        }
        PlanName::Paper { tables } => match paper_sizes(distance).iter().find(|size| size.0 == tables) {
            Some((_, 0)) => Some(nested_tables(distance as usize + 1)?),
            Some(&(_, blocks)) => Some(even(PlanShape::from_sets(blocks, &sets(blocks, blocks - distance)))?),
            None => None,
        },
        PlanName::Cover { tables } => match COVERS.iter().find(|(_, sets)| sets.len() == tables) {
            Some((blocks, free)) => {
                let all = (1_u64 << blocks) - 1;
                let prefixes: Vec<u64> = free.iter().map(|set| all & !set).collect();
                Some(even(PlanShape::from_sets(*blocks, &prefixes))?)
            }
            None => None,
        },
        PlanName::Probe { .. } | PlanName::Mixed { .. } => None,
    };
    Ok(tables)
}

impl<F: Fingerprint> Plan<F> {
    /// Creates a plan by its name, such as one of [`names`].
    ///
    /// # Errors
    /// [`Error::BadArgument`] if no plan has this name for the distance; [`Error::IncompletePlan`] if the
    /// plan is incomplete for the distance.
    pub fn named(name: &str, distance: u32) -> Result<Self> {
        if distance > F::MAX_DISTANCE {
            return Plan::new(name, distance, Vec::new());
        }
        let tables = tables(name, distance)?.ok_or_else(|| {
            Error::BadArgument(format!(
                "no plan `{}` for distance {distance}; expected auto, {}",
                excerpt(name),
                names::<F>(distance).join(", ")
            ))
        })?;
        Plan::new(name, distance, tables)
    }
}

/// Returns all sets of `size` out of `blocks` bit blocks. A set is a number with one binary digit per bit block: 1
/// if the bit block is in the set. The numbers are descending.
fn sets(blocks: u32, size: u32) -> Vec<u64> {
    if size == 0 {
        return vec![0];
    }
    let first = (size..=blocks).rev();
    first
        .flat_map(|left| sets(left - 1, size - 1).into_iter().map(move |set| 1 << (left - 1) | set))
        .collect()
}

/// Creates the tables of the `paper-N` plan with two levels. A fingerprint is cut into `count` bit blocks, and for
/// each bit block, the bits outside it are cut into `count` parts. The prefix of a table consists of a bit block
/// and one part of the bits outside it.
fn nested_tables<F: Fingerprint>(count: usize) -> Result<Vec<TablePlan<F>>> {
    let bits = all_bits::<F>();
    let mut tables = Vec::new();
    for outer in parts(&bits, count) {
        let rest: Vec<u8> = bits.iter().copied().filter(|bit| !outer.contains(bit)).collect();
        for inner in parts(&rest, count) {
            tables.push(table(&[&outer[..], &inner].concat(), 0)?);
        }
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns three values of a plan: the number of tables, the length of the shortest prefix in bits, and the
    /// sum of [`TablePlan::flips`] over all tables.
    fn shape<F: Fingerprint>(name: &str, distance: u32) -> (usize, u32, u32) {
        let plan = Plan::<F>::named(name, distance).unwrap();
        let shortest = plan.tables().iter().map(|table| table.prefix_bits).min().unwrap();
        (plan.tables().len(), shortest, plan.tables().iter().map(|table| table.flips).sum())
    }

    #[test]
    fn the_papers_plans() {
        assert_eq!(shape::<u64>("paper-4", 3), (4, 16, 0));
        assert_eq!(shape::<u64>("paper-10", 3), (10, 25, 0));
        assert_eq!(shape::<u64>("paper-16", 3), (16, 28, 0));
        assert_eq!(shape::<u64>("paper-20", 3).0, 20);
        assert!(shape::<u64>("paper-20", 3).1 >= 31);
    }

    #[test]
    fn covering_designs() {
        for (tables, prefix) in [(5, 18), (6, 21), (8, 24), (10, 25), (11, 28), (14, 32), (15, 32)] {
            for distance in 0..=3 {
                assert_eq!(shape::<u64>(&format!("cover-{tables}"), distance), (tables, prefix, 0));
            }
            assert!(matches!(
                Plan::<u64>::named(&format!("cover-{tables}"), 4),
                Err(Error::IncompletePlan { .. })
            ));
        }
    }

    #[test]
    fn probes() {
        assert_eq!(shape::<u64>("probe-1", 3), (1, 32, 3));
        assert_eq!(shape::<u64>("probe-2", 3), (2, 32, 2));
        assert_eq!(shape::<u64>("probe-3", 3), (3, 21, 1));
        assert_eq!(shape::<u64>("probe-4", 3), (4, 16, 0));
        assert_eq!(shape::<u64>("scan", 16), (1, 0, 0));
        assert!(Plan::<u64>::named("probe-5", 3).is_err());
    }

    #[test]
    fn every_name_of_every_distance_is_a_complete_plan() {
        fn check<F: Fingerprint>() {
            for distance in 0..=F::MAX_DISTANCE {
                for name in names::<F>(distance) {
                    let plan = Plan::<F>::named(&name, distance).unwrap();
                    assert_eq!((plan.name(), plan.distance()), (&name[..], distance));
                }
            }
            assert!(Plan::<F>::named("scan", F::MAX_DISTANCE + 1).is_err());
        }
        check::<u64>();
        check::<u128>();
    }

    #[test]
    fn mixed() {
        assert_eq!(shape::<u64>("mixed-3-24", 3), (3, 20, 1));
        assert_eq!(shape::<u64>("mixed-4-24", 3), (4, 24, 1));
        assert_eq!(shape::<u64>("mixed-4-24", 2), (4, 24, 1));
        assert_eq!(shape::<u128>("mixed-3-28", 3), (3, 28, 1));
        assert!(Plan::<u64>::named("mixed-3-24", 4).is_err());
    }

    #[test]
    fn names_that_are_none() {
        for name in [
            "", "auto", "paper", "paper-5", "cover-0", "cover-12", "probe-x", "probe-0", "x-4", "probe-65",
            "mixed-3", "mixed-2-20", "mixed-3-0", "mixed-3-33", "mixed-x-20", "mixed-3-x", "probe-3-20",
        ] {
            assert!(Plan::<u64>::named(name, 3).is_err(), "{name}");
        }
    }

    /// Checks that each name still means the same tables as in earlier versions. Manifests and benchmark reports
    /// contain only the name of a plan, not its tables.
    #[test]
    fn names_mean_the_plans_that_they_always_meant() {
        fn digest<F: Fingerprint>() -> u32 {
            let mut hasher = crc32fast::Hasher::new();
            for distance in 0..=F::MAX_DISTANCE {
                for name in names::<F>(distance) {
                    hasher.update(name.as_bytes());
                    for table in Plan::<F>::named(&name, distance).unwrap().tables() {
                        hasher.update(&[table.prefix_bits as u8, table.flips as u8]);
                        hasher.update(table.permutation.sources());
                    }
                }
            }
            hasher.finalize()
        }
        assert_eq!((digest::<u64>(), digest::<u128>()), (2_814_674_069, 607_082_146));
    }
}
