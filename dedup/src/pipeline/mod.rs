//! The stages of a deduplication, one file for each. They exchange [rows of fixed size](crate::rows).
//! [`stages`] runs them in order.

pub(crate) mod bit_set;
pub(crate) mod boilerplate;
pub(crate) mod by_distance;
pub(crate) mod by_similarity;
pub(crate) mod candidate_rule;
pub(crate) mod candidates;
pub(crate) mod clusters;
pub(crate) mod components;
pub(crate) mod counter;
pub(crate) mod dense_components;
pub(crate) mod dense_groups;
pub(crate) mod dense_pairs;
pub(crate) mod feature_bitmaps;
pub(crate) mod features;
pub(crate) mod hamming;
pub(crate) mod hamming_on_disk;
pub(crate) mod prefix_filter;
pub(crate) mod read_corpus;
pub(crate) mod removal_reasons;
pub(crate) mod representatives;
pub(crate) mod similar_components;
pub(crate) mod similarity_histogram;
pub(crate) mod stages;
pub(crate) mod stored;
pub(crate) mod unique_documents;
pub(crate) mod verify;

// `counter` uses these atomics. Its test replaces them by atomics that record the order of operations.
use std::sync::atomic;
