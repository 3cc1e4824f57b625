//! Stores that find similar documents, without their texts: `format-spec/similar.md`.

mod documents;
mod sample;
mod settings;

pub use self::documents::{SimilarAddition, SimilarDocument, SimilarDocuments, open_similar, similar_among};
pub use self::sample::{Estimate, Sample};
pub use self::settings::{DEFAULT_RECALL, DEFAULT_SIMILAR, Kept, Lookup, SIMILAR_MARK, SimilarSettings};
