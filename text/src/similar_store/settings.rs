//! Settings of a store of similar documents.

use simstore::error::excerpt;
use simstore::{Error, Fingerprint, Result, Snapshot};

use crate::thresholds::{check_recall, check_similarity, similarity_too_low_error};
use crate::{BANDS, BandSearch};

/// Metadata key under which a [store of similar documents](crate::open_similar_store) keeps its settings.
pub const SIMILAR_STORE_KEY: &str = "similar";

/// Default similarity threshold: the smallest Jaccard similarity at which two documents count as similar.
pub const DEFAULT_SIMILARITY: f64 = 0.8;
/// Default recall: the probability that a stored document exactly at the similarity threshold is found as a candidate.
pub const DEFAULT_RECALL: f64 = 0.95;

/// Preferred maximum of [`SimilarSettings::band_distance`]. With a smaller maximum, the store would have to index more bands for
/// the same recall, which takes more disk space.
const INDEX_BAND_DISTANCE: u32 = 8;

/// Settings of a [store of similar documents](crate::open_similar_store): similarity threshold, recall,
/// [band search](BandSearch), and whether texts are kept. The settings are stored as metadata with the key [`SIMILAR_STORE_KEY`].
///
/// ```
/// use simstore_text::SimilarSettings;
///
/// let settings = SimilarSettings::new(0.8, 0.95)?;
/// assert_eq!((settings.bands(), settings.band_distance()), (2, 8));
/// assert_eq!(settings.to_string(), "similar 0.8 recall 0.95 bands 2");
/// assert_eq!(settings.with_texts().to_string(), "similar 0.8 recall 0.95 bands 2 texts");
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimilarSettings {
    similar: f64,
    recall: f64,
    search: BandSearch,
    has_texts: bool,
}

impl SimilarSettings {
    /// Returns settings for a store without texts. A stored document whose similarity is at least `similar` is found as a
    /// candidate with a probability of `recall` or more.
    ///
    /// A stored document becomes a candidate if one of its indexed bands (64-bit words of the signature) differs from a band of the
    /// searched text in at most [`band_distance`](Self::band_distance) bits. The store indexes the smallest number of bands that
    /// reaches the recall with a band distance of at most 8 bits. If even all bands do not reach it, the store indexes all bands,
    /// and the band distance is greater than 8 bits.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if `similar` is not above 0 and at most 1, if `recall` is not above 0 and below 1, or if the recall
    /// needs a greater band distance than a store supports.
    pub fn new(similar: f64, recall: f64) -> Result<Self> {
        check_similarity(similar)?;
        check_recall(recall)?;
        let few = (1..=BANDS).find_map(|bands| BandSearch::new(similar, recall, bands, INDEX_BAND_DISTANCE));
        let search = few.or_else(|| search(similar, recall, BANDS));
        let search = search.ok_or_else(|| similarity_too_low_error(similar, recall))?;
        Ok(SimilarSettings { similar, recall, search, has_texts: false })
    }

    /// Returns the same settings, but for a store that also keeps texts, so that similarities are exact.
    #[must_use]
    pub fn with_texts(self) -> Self {
        SimilarSettings { has_texts: true, ..self }
    }

    /// Returns the same settings, but for a store without texts.
    pub(super) fn without_texts(self) -> Self {
        SimilarSettings { has_texts: false, ..self }
    }

    /// Returns the same settings, except that `other` determines whether the store keeps texts.
    pub(super) fn with_texts_as(self, other: &SimilarSettings) -> Self {
        SimilarSettings { has_texts: other.has_texts, ..self }
    }

    /// Reads the settings of a store. Returns `None` if the store has no such settings, because it is a plain store of
    /// fingerprints.
    ///
    /// # Errors
    /// The errors of [`Snapshot::metadata`]; [`Error::Refused`] if the settings are damaged.
    pub fn from_store<F: Fingerprint>(store: &Snapshot<F>) -> Result<Option<Self>> {
        let Some(value) = store.metadata(SIMILAR_STORE_KEY)? else { return Ok(None) };
        let settings = std::str::from_utf8(&value).ok().and_then(SimilarSettings::parse);
        let settings =
            settings.filter(|settings| F::BITS == u64::BITS && store.distance() >= settings.band_distance());
        settings.map(Some).ok_or_else(|| {
            let (path, value) = (store.path().display(), String::from_utf8_lossy(&value));
            let found = excerpt(&value);
            Error::Refused(format!(
                "{path}: the metadata `{SIMILAR_STORE_KEY}` does not say how similar documents are found: expected `{SIMILAR_STORE_KEY} S \
                 recall R bands N`, with or without ` texts`, found `{found}`"
            ))
        })
    }

    /// Reads the settings of a store, and checks that they are equal to `self` except for the number of bands. Returns `None` for
    /// an empty store without settings, whose creation was interrupted.
    ///
    /// # Errors
    /// [`Error::Setting`] if the store has other settings or is a plain store of fingerprints; the errors of
    /// [`SimilarSettings::from_store`].
    pub fn read_equivalent(self, store: &Snapshot<u64>) -> Result<Option<Self>> {
        let other = |setting, has, asked| {
            Err(Error::Setting { path: store.path().to_path_buf(), setting, has, requested: asked })
        };
        match SimilarSettings::from_store(store)? {
            Some(has) if has.is_equivalent_to(&self) => Ok(Some(has)),
            Some(has) => other("settings", has.describe(), self.describe()),
            None if store.is_empty() && store.highest_id().is_none() => Ok(None),
            None => other("type", "`fingerprints`".to_owned(), "`similar documents`".to_owned()),
        }
    }

    /// Parses settings in the format that `Display` writes. Returns `None` if the format is wrong or a value is out of range.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (text, has_texts) = match text.strip_suffix(" texts") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let words: Vec<&str> = text.split(' ').collect();
        let ["similar", similar, "recall", recall, "bands", bands] = words[..] else { return None };
        let (similar, recall): (f64, f64) = (similar.parse().ok()?, recall.parse().ok()?);
        let bands: usize = bands.parse().ok()?;
        let is_sound =
            similar > 0.0 && similar <= 1.0 && recall > 0.0 && recall < 1.0 && (1..=BANDS).contains(&bands);
        let search = is_sound.then(|| search(similar, recall, bands)).flatten()?;
        Some(SimilarSettings { similar, recall, search, has_texts })
    }

    /// Returns the similarity threshold: the smallest similarity at which two documents count as similar.
    pub fn min_similarity(&self) -> f64 {
        self.similar
    }

    /// Returns the required probability that a stored document exactly at the similarity threshold is found as a candidate. The
    /// actual probability may be a little higher.
    pub fn recall(&self) -> f64 {
        self.recall
    }

    /// Whether the store keeps texts, so that similarities are exact.
    pub fn has_texts(&self) -> bool {
        self.has_texts
    }

    /// Whether two settings are equal, ignoring the number of bands.
    pub(super) fn is_equivalent_to(&self, other: &SimilarSettings) -> bool {
        (self.similar, self.recall, self.has_texts) == (other.similar, other.recall, other.has_texts)
    }

    /// Returns the settings in words, for example `similarity >= 0.8, recall 0.95, without texts`.
    ///
    /// ```
    /// # use simstore_text::SimilarSettings;
    /// let settings = SimilarSettings::new(0.8, 0.95)?.with_texts();
    /// assert_eq!(settings.describe(), "similarity >= 0.8, recall 0.95, with texts");
    /// # Ok::<(), simstore::Error>(())
    /// ```
    #[must_use]
    pub fn describe(&self) -> String {
        let texts = if self.has_texts { "with texts" } else { "without texts" };
        format!("similarity >= {}, recall {}, {texts}", self.similar, self.recall)
    }

    /// Returns how many bands (64-bit words) the store indexes, counted from the beginning of each document's signature.
    pub fn bands(&self) -> usize {
        self.search.bands
    }

    /// Returns the Hamming distance of the store's queries. A stored document becomes a candidate if one of its indexed bands
    /// (64-bit words of the signature) differs from a band of the searched text in at most this number of bits.
    pub fn band_distance(&self) -> u32 {
        self.search.band_distance
    }

    /// Returns the maximum number of differing bits, out of 512, in the signatures of two documents whose texts are compared. If
    /// more bits differ, the documents are too dissimilar.
    pub fn signature_distance(&self) -> u32 {
        self.search.signature_distance
    }
}

/// Returns the band search with `bands` bands that reaches the recall `recall` for pairs with the similarity `similar`. Returns
/// `None` if this needs a greater band distance than stores support.
fn search(similar: f64, recall: f64, bands: usize) -> Option<BandSearch> {
    BandSearch::new(similar, recall, bands, u64::MAX_DISTANCE)
}

impl std::fmt::Display for SimilarSettings {
    /// Writes the settings in the format of the store's metadata.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SimilarSettings { similar, recall, has_texts, .. } = self;
        let texts = if *has_texts { " texts" } else { "" };
        write!(f, "{SIMILAR_STORE_KEY} {similar} recall {recall} bands {}{texts}", self.bands())
    }
}
