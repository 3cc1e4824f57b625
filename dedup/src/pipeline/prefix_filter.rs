//! Inverted index of the members of dense groups, and the search for members similar to a given one. In a *dense
//! group*, each document (*member*) is near many others.
//!
//! The *prefix* of a member consists of its rarest features; the module [`dense_groups`](crate::pipeline::dense_groups)
//! has the formula for their number. The *size* of a member is its number of features. There is one posting list for
//! each feature and each size. The list holds the members of this size that have the feature in their prefix.
//!
//! A search reads all its posting lists at the same time, one *range* of consecutive members after the other. So
//! members are found in the order in which they were added, and the search can stop at the first similar member.
//! After a similar member, a search may raise its minimum score. The search then drops the lists that cannot have
//! members with this score. If all members of a group are equally similar, the dropped lists are the long ones.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use simstore::Result;
use simstore::simd::{Kernel, dispatch};
use simstore_text::{BANDS, min_shared_members};

use crate::pipeline::dense_groups::{DenseGroups, DenseMember, LONG_SIGNATURE_WORDS};
use crate::rows::{PairScore, ScoredPair, score_from_similarity, similarity_from_score};

/// Memory for a document in a [`PrefixIndex`] in bytes, besides the features of the document.
const MEMBER_BYTES: u64 = 8 * (LONG_SIGNATURE_WORDS + BANDS) as u64 + 32;
/// Memory for an entry of a posting list in bytes. It includes a share of the memory of the list itself.
const POSTING_BYTES: u64 = 32;
/// Size of the first range of consecutive documents that a search in a [`PrefixIndex`] reads, in 64-bit words with one
/// bit for each document. Each later range has twice the size of the range before.
const FIRST_RANGE_WORDS: usize = 4;
/// Maximum size of a range of consecutive documents that a search in a [`PrefixIndex`] reads, in 64-bit words with one
/// bit for each document.
const MAX_RANGE_WORDS: usize = 1 << 10;

/// Entry of a posting list: (position of a document in the index, rank of the list's feature in this document). The
/// rarest feature of a document has rank 0.
pub(crate) type Posting = (u32, u32);

/// Value that [`SimilarVisitor::visit`] returns to continue the search with the same minimum score.
pub(crate) const UNCHANGED: PairScore = 0;
/// Value that [`SimilarVisitor::visit`] returns to end the search.
pub(crate) const STOP: PairScore = PairScore::MAX;

/// Visitor of the similar documents (*members*) that a search in a [`PrefixIndex`] finds. The visitor can exclude
/// members from the search.
pub(crate) trait SimilarVisitor {
    /// Whether the search may visit the member at position `_at` of the index. If not, the search does not compare
    /// this member.
    #[inline]
    fn wants(&self, _at: u32) -> bool {
        true
    }

    /// Number of postings that the search may skip at the start of the posting list with the key `_list`, because
    /// the visitor excludes their members.
    #[inline]
    fn skippable_prefix(&self, _list: u64, _postings: &[Posting]) -> usize {
        0
    }

    /// Visits the similar member at position `at` of the index. Returns the minimum score for the rest of the
    /// search, or [`UNCHANGED`] or [`STOP`].
    fn visit(&mut self, at: u32, score: PairScore) -> PairScore;
}

impl<V: FnMut(u32, PairScore) -> PairScore> SimilarVisitor for V {
    fn visit(&mut self, at: u32, score: PairScore) -> PairScore {
        self(at, score)
    }
}

/// Converts a minimum score to a similarity that is a little lower, as an allowance for rounding. The result is at
/// least `threshold`, the minimum similarity of the run.
fn min_similarity_for(min_score: PairScore, threshold: f64) -> f64 {
    (similarity_from_score(min_score) - 1e-6).max(threshold)
}

/// Returns how many features two documents with `a` and `b` features must share for a score of at least
/// `min_score`. Returns `None` if they cannot have this score. `threshold` is the minimum similarity of the run.
fn min_shared_for_score(min_score: PairScore, a: u32, b: u32, threshold: f64) -> Option<u32> {
    let are_near =
        |&both: &u32| score_from_similarity(f64::from(both) / f64::from(a + b - both)) >= min_score;
    (min_shared(a, b, min_similarity_for(min_score, threshold))..=a.min(b)).find(are_near)
}

/// Returns how many features two documents with `a` and `b` features must share for a similarity of at least
/// `min_similarity`; at least 1.
fn min_shared(a: u32, b: u32, min_similarity: f64) -> u32 {
    min_shared_members(a as usize, b as usize, min_similarity).max(1) as u32
}

/// Kernel that compares the signatures of one document with the signatures of up to 64 others. Compares only the
/// others whose bit is set in `bits`. The result has the bits of the others that may be similar.
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

/// Inverted index of documents in [dense groups](DenseGroups), called *members*. A search finds members that are
/// similar to a given document. The position of a member is the number of members that were added before it.
pub(crate) struct PrefixIndex<'a> {
    groups: &'a DenseGroups<'a>,
    /// Unique document of the member at each position.
    uniques: Vec<u32>,
    bands: Vec<[u64; BANDS]>,
    long_signatures: Vec<[u64; LONG_SIGNATURE_WORDS]>,
    features: Vec<Box<[u64]>>,
    /// Sizes of all members, each once. The size of a member is its number of features.
    sizes: BTreeSet<u32>,
    /// Posting lists. The key of a list is a hash of its feature and of the number of features that each member in the
    /// list has.
    lists: HashMap<u64, Vec<Posting>>,
    /// Estimated memory of the index in bytes.
    bytes: u64,
}

/// Memory that one thread reuses for all its searches in a [`PrefixIndex`].
#[derive(Default)]
pub(crate) struct SearchBuffer {
    listed_bits: Vec<u64>,
}

/// Posting list of a [`PrefixIndex`] in a search, and how much of the list the search has read. The search finds
/// members of the index that are similar to a given document.
struct PostingCursor<'i> {
    key: u64,
    postings: &'i [Posting],
    /// Number of postings of the list that were read or skipped.
    read_count: usize,
    /// Rank of the list's feature among the features of the document for which similar members are searched. The
    /// rarest feature has rank 0.
    position: u32,
    /// Number of features of each member of the index that the list contains. It is the same for all of them.
    size: u32,
    /// Maximum rank of the list's feature among the features of a member. If the rank is greater, the member cannot
    /// reach the minimum score, and is skipped.
    max_position: u32,
}

impl PostingCursor<'_> {
    /// Adapts the cursor to a new minimum score. `size` is the number of features of the document for which similar
    /// members are searched. `threshold` is the minimum similarity of the run. Returns whether the list may have
    /// members with the minimum score.
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
    /// Creates an empty index of documents in `groups`.
    pub(crate) fn new(groups: &'a DenseGroups<'a>) -> Self {
        PrefixIndex {
            groups,
            uniques: Vec::new(),
            bands: Vec::new(),
            long_signatures: Vec::new(),
            features: Vec::new(),
            sizes: BTreeSet::new(),
            lists: HashMap::new(),
            bytes: 0,
        }
    }

    /// Adds a member. Calls `visitor` for each posting list that gets the member, with the key of the list and all
    /// its postings.
    pub(crate) fn add(&mut self, member: &DenseMember, mut visitor: impl FnMut(u64, &[Posting])) {
        let (at, size) = (self.uniques.len() as u32, member.size());
        self.uniques.push(member.unique);
        self.bands.push(member.bands);
        self.long_signatures.push(member.long_signature);
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

    /// Whether the index has reached its memory limit.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.groups.memory
    }

    /// Unique document of the member at position `at`.
    pub(crate) fn member(&self, at: u32) -> u32 {
        self.uniques[at as usize]
    }

    /// Searches the index, on all cores, for members similar to each document in `uniques`, whose items are (unique
    /// document, minimum score). When a search finds a similar member, `next` gets the score of the two, and returns
    /// the minimum score for the rest of that search, or [`UNCHANGED`] or [`STOP`]. Returns the documents of
    /// `uniques`, each with its similar pairs.
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

    /// Visits the members of the index whose score with `member` is at least `min_score`, in order of addition.
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
            listed_bits: &mut buffer.listed_bits,
        };
        let (mut first, mut words) = (0, FIRST_RANGE_WORDS);
        while first < self.uniques.len() && !search.lists.is_empty() {
            let end = self.uniques.len().min(first + words * 64);
            if !search.visit_range(first, end, visitor) {
                return;
            }
            (first, words) = (end, MAX_RANGE_WORDS.min(2 * words));
        }
    }

    /// Returns the posting lists that can contain members whose score with `member` is at least `min_score`.
    fn posting_lists(&self, member: &DenseMember, min_score: PairScore) -> Vec<PostingCursor<'_>> {
        let (size, threshold) = (member.size(), self.groups.rule.min_similarity);
        let similarity = min_similarity_for(min_score, threshold);
        let smallest = (f64::from(size) * similarity - 1e-6).ceil().max(1.0) as u32;
        let largest = (f64::from(size) / similarity + 1e-6).floor().min(f64::from(u32::MAX - size)) as u32;
        let mut lists = Vec::new();
        for &other in self.sizes.range(smallest..=largest) {
            let Some(min_shared) = min_shared_for_score(min_score, size, other, threshold) else { continue };
            for (position, &feature) in (0..=size - min_shared).zip(&member.ordered) {
                let key = posting_list_key(feature, other);
                if let Some(postings) = self.lists.get(&key) {
                    lists.push(PostingCursor {
                        key,
                        postings,
                        read_count: 0,
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

/// State of a search in a [`PrefixIndex`]: it finds the documents in the index (*members*) that are similar to one
/// document.
struct IndexSearch<'s> {
    index: &'s PrefixIndex<'s>,
    member: &'s DenseMember,
    min_score: PairScore,
    lists: Vec<PostingCursor<'s>>,
    /// One bit for each of the consecutive members that are searched at present: whether the member is in a posting
    /// list of the field `lists`.
    listed_bits: &'s mut Vec<u64>,
}

impl IndexSearch<'_> {
    /// Visits the similar members at positions from `first` up to `end`. Returns whether the search continues.
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
            list.read_count +=
                list.postings[list.read_count..].partition_point(|&(at, _)| (at as usize) < end);
        }
        self.lists.retain(|list| list.read_count < list.postings.len());
        true
    }

    /// Visits the similar members at the positions in `range`. If a visit changes the minimum score, stops and returns
    /// the position of the visited member and the new minimum score. The first bit of the field `listed_bits` belongs
    /// to the position `first`.
    fn visit_until(
        &mut self,
        first: usize,
        range: std::ops::Range<usize>,
        visitor: &mut impl SimilarVisitor,
    ) -> Option<(usize, PairScore)> {
        let &mut IndexSearch { index, member, min_score, .. } = self;
        self.mark_listed(first, &range, visitor);
        let DenseGroups { verifier, pairs_tested, .. } = index.groups;
        for (word, &bits) in self.listed_bits.iter().enumerate() {
            let position = first + word * 64;
            let mut bits = wanted_bits(bits, position, visitor);
            if bits == 0 {
                continue;
            }
            pairs_tested.fetch_add(u64::from(bits.count_ones()), Ordering::Relaxed);
            let others = position..range.end.min(position + 64);
            let others = (&index.bands[others.clone()], &index.long_signatures[others]);
            let one = (&member.bands, &member.long_signature);
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

    /// Sets the field `listed_bits`: one bit for each member, set if the member has a position in `range` and is in a
    /// list of the field `lists`. The first bit belongs to the position `first`. Ignores postings that `visitor` skips.
    fn mark_listed(&mut self, first: usize, range: &std::ops::Range<usize>, visitor: &impl SimilarVisitor) {
        self.listed_bits.clear();
        self.listed_bits.resize((range.end - first).div_ceil(64), 0);
        for list in &mut self.lists {
            list.read_count = list.read_count.max(visitor.skippable_prefix(list.key, list.postings));
            let postings = list.postings[list.read_count..].iter();
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

/// Clears the bits of the members that `visitor` excludes, and returns the other bits. The lowest bit belongs to the
/// member at `position`.
fn wanted_bits(bits: u64, position: usize, visitor: &impl SimilarVisitor) -> u64 {
    let (mut left, mut wanted_bits) = (bits, 0);
    while left != 0 {
        let at = left.trailing_zeros();
        left &= left - 1;
        wanted_bits |= u64::from(visitor.wants(position as u32 + at)) << at;
    }
    wanted_bits
}
