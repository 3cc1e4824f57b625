//! All documents of a corpus: ids, places, fingerprints, and the values that `--keep` compares; in memory, or on disk if the
//! memory is too small.

mod corpus;
mod disk;
mod listing;
mod names;
mod preference;
mod ranks;
mod repeated;
mod reread;
mod scan;
mod stretch;
mod value;

pub(super) use self::corpus::{Corpus, Told};
pub(super) use self::listing::{Listing, check_unchanged};
pub use self::preference::Keep;
pub(super) use self::ranks::Ranks;
pub(super) use self::repeated::count as count_repeated;
pub(super) use self::reread::Reread;
pub(super) use self::scan::Document;
pub use self::value::{moment_key, number_key};
