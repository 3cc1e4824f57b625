//! Search for near documents in the reference stores, by similarity and by distance.

pub(crate) mod candidate_lookup;
pub(crate) mod dense_groups;
pub(crate) mod hamming;
pub(crate) mod pairs;
pub(crate) mod similar;
pub(crate) mod stored_matches;
