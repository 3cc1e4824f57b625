//! A *store of similar documents* is an on-disk store that keeps a MinHash signature and optionally the text of each document, and
//! finds the stored documents that are similar to a given text. `format-spec/similar.md` defines the format.

mod check;
mod document_comparer;
mod encoded_document;
mod estimate_limit;
mod name_index;
mod salvage;
mod settings;
mod similar_documents;
mod similarity_estimate;
mod text_codec;

pub use self::check::check_similar_store;
pub use self::document_comparer::{DocumentComparer, SimilarDocument, StoredDocument};
pub use self::encoded_document::EncodedDocument;
pub use self::estimate_limit::EstimateLimit;
pub use self::name_index::DocumentNameIndex;
pub use self::salvage::salvage_similar_store;
pub use self::settings::{DEFAULT_RECALL, DEFAULT_SIMILARITY, SIMILAR_STORE_KEY, SimilarSettings};
pub use self::similar_documents::{PreparedText, SimilarAddition, SimilarDocuments, open_similar_store};
pub use self::similarity_estimate::SimilarityEstimate;
