//! Documents of stores that are near to input documents.

pub(crate) mod dense_groups;
pub(crate) mod hamming;
pub(crate) mod look_up;
pub(crate) mod matches;
pub(crate) mod pairs;
pub(crate) mod similar;
