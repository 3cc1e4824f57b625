//! Stores that find similar documents, with their texts or without: `format-spec/similar.md`.

mod check;
mod documents;
mod estimate;
mod kept;
mod limit;
mod names;
mod salvage;
mod settings;
mod stored;
mod texts;

pub use self::check::check_similar;
pub use self::documents::{PreparedText, SimilarAddition, SimilarDocuments, open_similar};
pub use self::estimate::Estimate;
pub use self::kept::Kept;
pub use self::limit::EstimateLimit;
pub use self::names::DocumentNames;
pub use self::salvage::salvage_similar;
pub use self::settings::{DEFAULT_RECALL, DEFAULT_SIMILAR, SIMILAR_MARK, SimilarSettings};
pub use self::stored::{SimilarDocument, StoredDocument, StoredTexts};
