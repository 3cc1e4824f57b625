//! The stages of a deduplication, a file each. They hand on [rows of plain numbers](super::model).

mod bitmap;
mod boilerplate;
mod candidates;
pub(super) mod choice;
mod clusters;
mod compare;
mod components;
mod counter;
mod crowd;
mod crowd_components;
mod crowd_index;
mod crowd_pairs;
pub(super) mod dense_stored;
pub(super) mod distance;
mod distinct;
mod features;
pub(super) mod look_up;
mod marks;
mod near;
mod near_on_disk;
mod near_stored;
pub(super) mod nearest;
pub(super) mod rule;
pub(super) mod similar;
mod similar_components;
pub(super) mod similar_stored;
pub(super) mod sketch;
mod stars;
mod stored;
pub(super) mod stored_pairs;

// The counter uses these atomics; its test has others here.
use std::sync::atomic;

pub use self::boilerplate::Boilerplate;
pub(super) use self::clusters::{Clustering, Clusters, OfStore};
pub(super) use self::distinct::{Sets, distinct};
pub(super) use self::features::{Features, FeaturesWriter, ReadAgain};
pub(super) use self::marks::Marks;
pub(super) use self::nearest::Nearest;
pub(super) use self::stars::pairs_of_stars;
pub(super) use self::stored::FoundStored;
