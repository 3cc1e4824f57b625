//! `std::partial_sort` of the GNU C++ library, by which cppjieba selects keywords. Its algorithm decides which of several keywords
//! with equal weights are selected, and in which order.

use crate::presets::weighted_fingerprint::Keyword;

/// Returns the `count` heaviest keywords, heaviest first.
///
/// The order of keywords with equal weights follows from the algorithm. It builds a heap of the first `count` keywords, with the
/// lightest on top. Each later keyword that is heavier than the top replaces the top. At the end, the heap is sorted by heap sort.
pub(super) fn select_heaviest(mut keywords: Vec<Keyword<'_>>, count: usize) -> Vec<Keyword<'_>> {
    let count = count.min(keywords.len());
    let (heap, others) = keywords.split_at_mut(count);
    for parent in (0..count / 2).rev() {
        sift(heap, parent);
    }
    for other in others {
        if heap.first().is_some_and(|lightest| other.weight > lightest.weight) {
            std::mem::swap(other, &mut heap[0]);
            sift(heap, 0);
        }
    }
    for end in (1..count).rev() {
        heap.swap(0, end);
        sift(&mut heap[..end], 0);
    }
    keywords.truncate(count);
    keywords
}

/// Restores the order of the heap after the keyword at index `hole` has changed. Swaps this keyword with the lighter child until
/// it is a leaf, then with its parent as long as the parent is heavier, but not above `hole`.
fn sift(heap: &mut [Keyword<'_>], hole: usize) {
    let mut at = hole;
    while 2 * at + 1 < heap.len() {
        let (left, right) = (2 * at + 1, 2 * at + 2);
        let lighter =
            if right < heap.len() && heap[right].weight <= heap[left].weight { right } else { left };
        heap.swap(at, lighter);
        at = lighter;
    }
    while at > hole && heap[(at - 1) / 2].weight > heap[at].weight {
        heap.swap(at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_heaviest_in_order(weights in prop::collection::vec(0_u8..20, 0..40), count in 0_usize..10) {
            let keywords = weights.iter().map(|&w| Keyword { word: "", weight: f64::from(w) }).collect();
            let found: Vec<_> = select_heaviest(keywords, count).iter().map(|k| k.weight as u8).collect();
            let mut sorted = weights;
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            sorted.truncate(count);
            prop_assert_eq!(found, sorted);
        }
    }
}
