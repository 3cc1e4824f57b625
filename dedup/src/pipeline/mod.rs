//! The stages of a deduplication, one file for each. They pass on [rows of numbers](crate::rows); [`stages`] is their order.

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
pub(crate) mod exact;
pub(crate) mod feature_bitmaps;
pub(crate) mod features;
pub(crate) mod hamming;
pub(crate) mod hamming_on_disk;
pub(crate) mod nearest;
pub(crate) mod prefix_filter;
pub(crate) mod reading;
pub(crate) mod representatives;
pub(crate) mod similar_components;
pub(crate) mod stages;
pub(crate) mod stored;
pub(crate) mod verify;

// The counter uses these atomics; its test has others here.
use std::sync::atomic;
