//! Text fingerprints for near-duplicate detection: simhash fingerprints, MinHash signatures, and a store that finds similar
//! documents.
//!
//! A [`Profile`] defines how a text becomes *features*: which markup is removed, how the text is split into words, and how the
//! features are weighted. Fingerprints and signatures are computed from the features. Texts may be in Chinese, English or any
//! other language.
//!
//! # Fingerprints
//!
//! A simhash fingerprint has 64 or 128 bits. Fingerprints of similar texts differ in few bits. The engine, `simstore`, stores
//! fingerprints and finds all of them within k bits of a query.
//!
//! ```
//! use simstore_text::Profile;
//!
//! let profile = Profile::default();
//! let simhash = profile.fingerprint::<u64>("A rose is a rose is a rose.").unwrap();
//! assert_eq!(simhash.features, 3);
//! assert!(simhash.is_short());
//! assert_eq!(profile.fingerprint::<u64>("?!"), None);
//! ```
//!
//! Fingerprints of short texts are unreliable: see [`Simhash::is_short`].
//!
//! # Profiles
//!
//! The name of a profile contains all its settings: a tokenizer, then options. The same name gives the same fingerprints on every
//! machine and in every version. Weights are integers, hash functions have fixed seeds, and tests compare with literal values.
//!
//! ```
//! use simstore_text::Profile;
//!
//! let profile: Profile = "words-2,plain-text".parse()?;
//! let mut features = Vec::new();
//! profile.visit_features("To <b>be</b>, or not", |feature, _weight| features.push(feature.to_owned()));
//! assert_eq!(features, ["to be", "be or", "or not"]);
//! # Ok::<(), simstore::Error>(())
//! ```
//!
//! Some profiles need files, such as a dictionary of Chinese words: see [`Resources`]. [`DocumentFrequencies`] computes one of
//! these files, the table of inverse document frequencies, from a corpus. A [`Preset`] reproduces the fingerprints of another
//! tool, bit for bit.
//!
//! # Similarity and signatures
//!
//! The similarity of two texts is the [Jaccard similarity](fn@jaccard) of their [feature sets](Profile::feature_set). The profile
//! [`Profile::shingles`] defines the features for this purpose: every three successive words.
//!
//! A [`Signature`] estimates the similarity without the texts. It has 512 bits, one for each MinHash function (b-bit MinHash with
//! b = 1), in eight *bands* of 64 bits.
//!
//! ```
//! use simstore_text::{MinHasher, Profile, jaccard};
//!
//! let shingles = Profile::shingles();
//! let texts = ["To be, or not to be, that is", "To be, or not to be, this is"];
//! let [a, b] = texts.map(|text| shingles.feature_set(text));
//! assert_eq!(jaccard(&a, &b), 0.5);
//!
//! let hasher = MinHasher::new(shingles);
//! let [a, b] = texts.map(|text| hasher.signature(text).unwrap());
//! // A bit differs with probability (1 - 0.5) / 2.
//! assert!((90..170).contains(&a.distance(&b)));
//! ```
//!
//! Bands make similar texts searchable: two texts become candidates if one of the first few bands differs in at most k bits. A
//! [`BandSearch`] chooses k for a similarity and a recall.
//!
//! # A store of similar documents
//!
//! [`SimilarDocuments`] is a live store. It adds each new document, or returns the stored documents that are similar to it.
//!
//! ```
//! use simstore::StoreOptions;
//! use simstore_text::{Profile, SimilarAddition, SimilarDocuments, SimilarSettings};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pages");
//! let settings = SimilarSettings::new(0.8, 0.95)?.with_texts();
//! let pages = SimilarDocuments::open(&path, StoreOptions::default(), Profile::shingles(), settings)?;
//! let text = "The quick brown fox jumps over the lazy dog, and over the sleeping cat.";
//! assert_eq!(pages.add(text, 1, None)?, SimilarAddition::Added);
//! assert!(matches!(pages.add(&text.replace("cat", "fox"), 2, None)?, SimilarAddition::SimilarTo(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to start in the code
//!
//! `profile` is the entry point. Its steps are `clean`, `tokenize`, `weights` and `feature_hash`; `simhash` adds up the hashes
//! of the weighted features. `minhash` makes signatures, and `band_search` computes the recall of a search by bands.
//! `similar_store` is the store of similar documents. `word_diff` shows where two texts differ.
#![forbid(unsafe_code)]

mod band_search;
mod bits;
mod clean;
mod document_frequencies;
mod feature_hash;
mod hash_deduplicator;
mod idf_table;
mod jaccard;
mod majority;
mod minhash;
mod presets;
mod profile;
mod profile_name;
mod resources;
mod signature_steps;
mod simhash;
mod similar_store;
mod splitmix;
mod thresholds;
mod tokenize;
mod weights;
mod word_diff;

pub use crate::band_search::BandSearch;
pub use crate::clean::DropReason;
pub use crate::document_frequencies::{DocumentFrequencies, IdfRow};
pub use crate::jaccard::{jaccard, jaccard_at_least, min_shared_members};
pub use crate::minhash::{BANDS, MinHasher, Signature, minhash, signature_digest};
pub use crate::presets::Preset;
pub use crate::profile::Profile;
pub use crate::resources::{Checksum, Resource, Resources};
#[doc(hidden)]
pub use crate::signature_steps::SignatureSteps;
pub use crate::simhash::{SHORT_TEXT_FEATURES, Simhash, simhash};
pub use crate::similar_store::{
    DEFAULT_RECALL, DEFAULT_SIMILARITY, DocumentComparer, DocumentNameIndex, EncodedDocument, EstimateLimit,
    PreparedText, SIMILAR_STORE_KEY, SimilarAddition, SimilarDocument, SimilarDocuments, SimilarSettings,
    SimilarityEstimate, StoredDocument, check_similar_store, open_similar_store, salvage_similar_store,
};
pub use crate::thresholds::{check_recall, check_similarity, similarity_too_low_error};
pub use crate::word_diff::{DiffSegment, DiffWord, WordDiff, WordEdit};
