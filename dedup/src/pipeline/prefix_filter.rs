//! Inverted index of the members of dense groups by their rarest features, and the search for members similar
//! to a given one.
//!
//! A posting list holds the members with a certain number of features that have a certain feature in their
//! prefix. A search reads its lists together, one range of members at a time, oldest first. So it can stop at
//! the first similar member. If it continues for more similar members only, it drops the lists that cannot
//! have any. In a group whose members are all equally similar, these are the long lists.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use simstore::Result;
use simstore::simd::{Kernel, dispatch};
use simstore_text::{BANDS, min_shared_members};

use crate::pipeline::dense_groups::{DenseGroups, DenseMember, LONG_SIGNATURE_WORDS};
use crate::rows::{PairScore, ScoredPair, score_from_similarity, similarity_from_score};

/// Bytes of memory for a member with its signatures, without its features.
const MEMBER_BYTES: u64 = 8 * (LONG_SIGNATURE_WORDS + BANDS) as u64 + 32;
/// Bytes of memory for a posting, with a share of its list.
const POSTING_BYTES: u64 = 32;
/// Members in the first range of a search, in 64-bit words with one bit per member. Each range is twice as
/// large as the one before.
const FIRST_WORDS: usize = 4;
/// Maximum size of a range, in 64-bit words.
const MAX_WORDS: usize = 1 << 10;

/// Entry of a posting list: position of the member in the index, and position of the feature in the member,
/// rarest first.
pub(crate) type Posting = (u32, u32);

/// Return value of a visitor: the search continues with the same minimum score.
pub(crate) const UNCHANGED: PairScore = 0;
/// Return value of a visitor: the search ends.
pub(crate) const STOP: PairScore = PairScore::MAX;

/// Visitor of similar members, which can skip members.
pub(crate) trait SimilarVisitor {
    /// Whether to visit the member at a position of the index.
    #[inline]
    fn wants(&self, _at: u32) -> bool {
        true
    }

    /// Number of postings at the start of a list whose members need not be visited.
    #[inline]
    fn skippable_prefix(&self, _list: u64, _postings: &[Posting]) -> usize {
        0
    }

    /// Visits the similar member at a position of the index. Returns the minimum score of further members,
    /// [`UNCHANGED`] or [`STOP`].
    fn visit(&mut self, at: u32, score: PairScore) -> PairScore;
}

impl<V: FnMut(u32, PairScore) -> PairScore> SimilarVisitor for V {
    fn visit(&mut self, at: u32, score: PairScore) -> PairScore {
        self(at, score)
    }
}

/// Converts a score to a similarity, lowered a little against rounding, but not below the threshold `threshold`.
fn min_similarity_for(min_score: PairScore, threshold: f64) -> f64 {
    (similarity_from_score(min_score) - 1e-6).max(threshold)
}

/// Least number of shared features of members with `a` and `b` features whose score is at least `min_score`;
/// `None` if no such number exists.
fn min_shared_for_score(min_score: PairScore, a: u32, b: u32, threshold: f64) -> Option<u32> {
    let are_near =
        |&both: &u32| score_from_similarity(f64::from(both) / f64::from(a + b - both)) >= min_score;
    (min_shared(a, b, min_similarity_for(min_score, threshold))..=a.min(b)).find(are_near)
}

/// Least number of shared features of members with `a` and `b` features and this similarity.
fn min_shared(a: u32, b: u32, min_similarity: f64) -> u32 {
    min_shared_members(a as usize, b as usize, min_similarity).max(1) as u32
}

/// Kernel that compares the signatures of one member with up to 64 others, given by `bits`. Returns the bits
/// of those that may be similar.
struct SignatureFilter<'a> {
    groups: &'a DenseGroups<'a>,
    one: (&'a [u64; BANDS], &'a [u64; LONG_SIGNATURE_WORDS]),
    others: (&'a [[u64; BANDS]], &'a [[u64; LONG_SIGNATURE_WORDS]]),
    bits: u64,
}

impl Kernel for SignatureFilter<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let SignatureFilter { groups, one, others, mut bits } = self;
        let mut similar = 0;
        while bits != 0 {
            let at = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            similar |= u64::from(groups.may_be_similar(one, (&others.0[at], &others.1[at]))) << at;
        }
        similar
    }
}

/// Inverted index of members.
pub(crate) struct PrefixIndex<'a> {
    groups: &'a DenseGroups<'a>,
    /// Numbers of the members, oldest first. Positions in the index refer to this list.
    uniques: Vec<u32>,
    bands: Vec<[u64; BANDS]>,
    long: Vec<[u64; LONG_SIGNATURE_WORDS]>,
    features: Vec<Box<[u64]>>,
    /// Distinct numbers of features of the members.
    sizes: BTreeSet<u32>,
    /// Posting lists by a hash of the feature and the number of features.
    lists: HashMap<u64, Vec<Posting>>,
    /// Estimated memory in bytes.
    bytes: u64,
}

/// Reusable memory of a search.
#[derive(Default)]
pub(crate) struct SearchBuffer {
    seen: Vec<u64>,
}

/// Posting list during a search.
struct PostingCursor<'i> {
    key: u64,
    postings: &'i [Posting],
    /// Number of postings already read.
    done: usize,
    /// Position of the feature in the searched member, rarest first.
    position: u32,
    /// Number of features of each member in the list.
    size: u32,
    /// Maximum position of the feature in a member that can be similar enough.
    max_position: u32,
}

impl PostingCursor<'_> {
    /// Changes the minimum score. Returns whether the list may still have members with this score.
    fn set_min_score(&mut self, min_score: PairScore, size: u32, threshold: f64) -> bool {
        let Some(min_shared) = min_shared_for_score(min_score, size, self.size, threshold) else {
            return false;
        };
        self.max_position = self.size - min_shared;
        self.position <= size - min_shared
    }
}

fn posting_list_key(feature: u64, size: u32) -> u64 {
    feature ^ u64::from(size).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<'a> PrefixIndex<'a> {
    /// Creates an empty index.
    pub(crate) fn new(groups: &'a DenseGroups<'a>) -> Self {
        PrefixIndex {
            groups,
            uniques: Vec::new(),
            bands: Vec::new(),
            long: Vec::new(),
            features: Vec::new(),
            sizes: BTreeSet::new(),
            lists: HashMap::new(),
            bytes: 0,
        }
    }

    /// Adds a member. Calls `visitor` with the key and postings of each list that it was added to.
    pub(crate) fn add(&mut self, member: &DenseMember, mut visitor: impl FnMut(u64, &[Posting])) {
        let (at, size) = (self.uniques.len() as u32, member.size());
        self.uniques.push(member.unique);
        self.bands.push(member.bands);
        self.long.push(member.long);
        self.features.push(member.features.as_slice().into());
        self.sizes.insert(size);
        // The smallest size that can be similar requires the fewest shared features, so it gives the longest prefix.
        let min_similarity = self.groups.rule.min_similarity;
        let smallest = (f64::from(size) * min_similarity - 1e-6).ceil().max(1.0) as u32;
        let first = size - min_shared(size, smallest, min_similarity).min(size) + 1;
        for (position, &feature) in (0..first).zip(&member.ordered) {
            let key = posting_list_key(feature, size);
            let postings = self.lists.entry(key).or_default();
            postings.push((at, position));
            visitor(key, postings);
        }
        self.bytes += MEMBER_BYTES + u64::from(first) * POSTING_BYTES + 8 * u64::from(size);
    }

    /// Whether the index has used up its memory.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.groups.memory
    }

    /// Number of the member at a position of the index.
    pub(crate) fn member(&self, at: u32) -> u32 {
        self.uniques[at as usize]
    }

    /// Searches on all cores for indexed members similar to each of `uniques`, which come with their minimum
    /// scores. `next` maps the score of a found member to the minimum score of further ones.
    pub(crate) fn search(
        &self,
        uniques: Vec<(u32, PairScore)>,
        next: impl Fn(PairScore) -> PairScore + Sync,
    ) -> Result<Vec<(DenseMember, Vec<ScoredPair>)>> {
        let find = |buffer: &mut SearchBuffer, (unique, min_score)| {
            let (member, mut found) = (self.groups.read_member(unique)?, Vec::new());
            self.visit_similar(&member, min_score, buffer, &mut |at, score| {
                found.push((unique, self.member(at), score));
                next(score)
            });
            Ok((member, found))
        };
        uniques.into_par_iter().map_init(SearchBuffer::default, find).collect()
    }

    /// Visits the indexed members whose score with `member` is at least `min_score`, oldest first.
    pub(crate) fn visit_similar(
        &self,
        member: &DenseMember,
        min_score: PairScore,
        buffer: &mut SearchBuffer,
        visitor: &mut impl SimilarVisitor,
    ) {
        let mut search = IndexSearch {
            index: self,
            member,
            min_score,
            lists: self.posting_lists(member, min_score),
            listed_bits: &mut buffer.seen,
        };
        let (mut first, mut words) = (0, FIRST_WORDS);
        while first < self.uniques.len() && !search.lists.is_empty() {
            let end = self.uniques.len().min(first + words * 64);
            if !search.visit_range(first, end, visitor) {
                return;
            }
            (first, words) = (end, MAX_WORDS.min(2 * words));
        }
    }

    /// Returns the posting lists that may have members similar to `member`.
    fn posting_lists(&self, member: &DenseMember, min_score: PairScore) -> Vec<PostingCursor<'_>> {
        let (size, rule_min) = (member.size(), self.groups.rule.min_similarity);
        let similarity = min_similarity_for(min_score, rule_min);
        let smallest = (f64::from(size) * similarity - 1e-6).ceil().max(1.0) as u32;
        let largest = (f64::from(size) / similarity + 1e-6).floor().min(f64::from(u32::MAX - size)) as u32;
        let mut lists = Vec::new();
        for &other in self.sizes.range(smallest..=largest) {
            let Some(min_shared) = min_shared_for_score(min_score, size, other, rule_min) else { continue };
            for (position, &feature) in (0..=size - min_shared).zip(&member.ordered) {
                let key = posting_list_key(feature, other);
                if let Some(postings) = self.lists.get(&key) {
                    lists.push(PostingCursor {
                        key,
                        postings,
                        done: 0,
                        position,
                        size: other,
                        max_position: other - min_shared,
                    });
                }
            }
        }
        lists
    }
}

/// State of the search for members similar to one member.
struct IndexSearch<'s> {
    index: &'s PrefixIndex<'s>,
    member: &'s DenseMember,
    min_score: PairScore,
    lists: Vec<PostingCursor<'s>>,
    /// One bit for each member of the current range: whether it is in one of the lists.
    listed_bits: &'s mut Vec<u64>,
}

impl IndexSearch<'_> {
    /// Visits the similar members of a range. Returns whether to continue with the next range.
    fn visit_range(&mut self, first: usize, end: usize, visitor: &mut impl SimilarVisitor) -> bool {
        let mut from = first;
        while let Some((at, min_score)) = self.visit_until(first, from..end, visitor) {
            if min_score == STOP {
                return false;
            }
            let (size, threshold) = (self.member.size(), self.index.groups.rule.min_similarity);
            self.min_score = min_score;
            self.lists.retain_mut(|list| list.set_min_score(min_score, size, threshold));
            from = at + 1;
        }
        for list in &mut self.lists {
            list.done += list.postings[list.done..].partition_point(|&(at, _)| (at as usize) < end);
        }
        self.lists.retain(|list| list.done < list.postings.len());
        true
    }

    /// Visits similar members of a range until the minimum score changes. Then it returns the position of the
    /// last member visited, and the new minimum score. `first` is the position of the first bit of `listed_bits`.
    fn visit_until(
        &mut self,
        first: usize,
        range: std::ops::Range<usize>,
        visitor: &mut impl SimilarVisitor,
    ) -> Option<(usize, PairScore)> {
        let &mut IndexSearch { index, member, min_score, .. } = self;
        self.mark_seen(first, &range, visitor);
        let DenseGroups { verifier, pairs_tested, .. } = index.groups;
        for (word, &bits) in self.listed_bits.iter().enumerate() {
            let position = first + word * 64;
            let mut bits = wanted_bits(bits, position, visitor);
            if bits == 0 {
                continue;
            }
            pairs_tested.fetch_add(u64::from(bits.count_ones()), Ordering::Relaxed);
            let others = position..range.end.min(position + 64);
            let others = (&index.bands[others.clone()], &index.long[others]);
            let one = (&member.bands, &member.long);
            bits = dispatch(SignatureFilter { groups: index.groups, one, others, bits });
            while bits != 0 {
                let at = position + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if index.uniques[at] == member.unique || !visitor.wants(at as u32) {
                    continue;
                }
                if let Some(score) = verifier.verify_features(&member.features, &index.features[at])
                    && score >= min_score
                {
                    match visitor.visit(at as u32, score) {
                        UNCHANGED => {}
                        next => return Some((at, next)),
                    }
                }
            }
        }
        None
    }

    /// Sets the bits of the members of a range that are in lists.
    fn mark_seen(&mut self, first: usize, range: &std::ops::Range<usize>, visitor: &impl SimilarVisitor) {
        self.listed_bits.clear();
        self.listed_bits.resize((range.end - first).div_ceil(64), 0);
        for list in &mut self.lists {
            list.done = list.done.max(visitor.skippable_prefix(list.key, list.postings));
            let postings = list.postings[list.done..].iter();
            for &(at, position) in postings.take_while(|&&(at, _)| (at as usize) < range.end) {
                if let Some(bit) =
                    (at as usize).checked_sub(range.start).filter(|_| position <= list.max_position)
                {
                    let bit = bit + range.start - first;
                    self.listed_bits[bit / 64] |= 1 << (bit % 64);
                }
            }
        }
    }
}

/// Keeps the bits of the members that the visitor wants. `position` belongs to the lowest bit.
fn wanted_bits(bits: u64, position: usize, visitor: &impl SimilarVisitor) -> u64 {
    let (mut left, mut wanted_bits) = (bits, 0);
    while left != 0 {
        let at = left.trailing_zeros();
        left &= left - 1;
        wanted_bits |= u64::from(visitor.wants(position as u32 + at)) << at;
    }
    wanted_bits
}
