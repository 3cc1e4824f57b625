//! Exact Jaccard self-join of shingle sets. Counts the shared shingles of each pair with posting lists. The posting list
//! of a shingle has the sets that contain the shingle.

use std::collections::HashMap;

use rayon::prelude::*;

/// Two similar sets, by their indexes, with `a < b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JaccardPair {
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) similarity: f64,
}

/// Returns all pairs of sets with a Jaccard similarity of at least `least`, ordered by `(a, b)`. `least` must be above 0.
/// The elements of each set must be ascending and distinct. An empty set is in no pair.
pub(crate) fn similar_pairs(sets: &[Vec<u64>], least: f64) -> Vec<JaccardPair> {
    // Sets in order of size have ranks. A set of n elements is similar only to sets of at least `least * n`
    // elements, so each set is compared with smaller ranks from the first such set on.
    let mut by_size: Vec<u32> = (0..sets.len() as u32).collect();
    by_size.sort_by_key(|&index| sets[index as usize].len());
    let size = |rank: u32| sets[by_size[rank as usize] as usize].len();
    let (postings, lists_of_sets) = build_postings(sets, &by_size);
    let pairs_with_smaller = |counts: &mut Vec<u32>, rank: u32| {
        let index = by_size[rank as usize];
        let len = size(rank);
        let first =
            by_size.partition_point(|&other| (sets[other as usize].len() as f64) < least * len as f64) as u32;
        let first = first.min(rank);
        counts.clear();
        counts.resize((rank - first) as usize, 0);
        for &list in &lists_of_sets[index as usize] {
            let list = &postings[list as usize];
            let list = &list[list.partition_point(|&other| other < first)..];
            for &other in &list[..list.partition_point(|&other| other < rank)] {
                counts[(other - first) as usize] += 1;
            }
        }
        let pair = |(&shared, other): (&u32, u32)| {
            let similarity = f64::from(shared) / (len + size(other) - shared as usize) as f64;
            let other = by_size[other as usize];
            let (a, b) = (index.min(other), index.max(other));
            (similarity >= least).then_some(JaccardPair { a, b, similarity })
        };
        counts.iter().zip(first..).filter_map(pair).collect::<Vec<_>>()
    };
    let mut pairs: Vec<JaccardPair> = (0..sets.len() as u32)
        .into_par_iter()
        .filter(|&rank| size(rank) > 0)
        .map_init(Vec::new, pairs_with_smaller)
        .flatten_iter()
        .collect();
    pairs.sort_by_key(|pair| (pair.a, pair.b));
    pairs
}

/// Builds a posting list for each element. `by_size` has the indexes of all sets in order of set size. A posting list has
/// the sets that contain the element, as ascending positions in `by_size`.
///
/// Returns two vectors. The first has the posting lists. The second has a vector for each set: the indexes of the posting
/// lists of the elements that the set shares with other sets.
fn build_postings(sets: &[Vec<u64>], by_size: &[u32]) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let mut list_numbers: HashMap<u64, u32> = HashMap::new();
    let mut lists: Vec<Vec<u32>> = Vec::new();
    let mut lists_of_sets = vec![Vec::new(); sets.len()];
    for (&index, rank) in by_size.iter().zip(0..) {
        for &element in &sets[index as usize] {
            let number = *list_numbers.entry(element).or_insert_with(|| {
                lists.push(Vec::new());
                lists.len() as u32 - 1
            });
            lists[number as usize].push(rank);
            lists_of_sets[index as usize].push(number);
        }
    }
    for numbers in &mut lists_of_sets {
        numbers.retain(|&number| lists[number as usize].len() > 1);
    }
    (lists, lists_of_sets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn jaccard(a: &[u64], b: &[u64]) -> f64 {
        let shared = a.iter().filter(|element| b.contains(element)).count();
        shared as f64 / (a.len() + b.len() - shared) as f64
    }

    #[test]
    fn the_pairs_of_the_plain_loop() {
        let mut random = Random(1);
        let mut sets: Vec<Vec<u64>> = Vec::new();
        for _ in 0..400 {
            let mut set: Vec<u64> = match sets.len() {
                0 => Vec::new(),
                known if random.below(2) == 0 => sets[random.index(known)].clone(),
                _ => (0..random.below(20)).map(|_| random.below(30)).collect(),
            };
            set.extend((0..random.below(4)).map(|_| random.below(30)).collect::<Vec<_>>());
            set.sort_unstable();
            set.dedup();
            sets.push(set);
        }
        for least in [0.3, 0.5, 0.7, 0.8, 1.0] {
            let mut expected = Vec::new();
            for b in 0..sets.len() {
                for a in 0..b {
                    let similarity = jaccard(&sets[a], &sets[b]);
                    if similarity >= least && !sets[a].is_empty() && !sets[b].is_empty() {
                        expected.push(JaccardPair { a: a as u32, b: b as u32, similarity });
                    }
                }
            }
            expected.sort_by_key(|pair| (pair.a, pair.b));
            assert!(!expected.is_empty());
            assert_eq!(similar_pairs(&sets, least), expected);
        }
    }
}
