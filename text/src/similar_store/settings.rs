//! Settings of a store of similar documents.

use simstore::error::excerpt;
use simstore::{Error, Fingerprint, Result, Snapshot};

use crate::thresholds::{check_recall, check_similarity, similarity_too_low_error};
use crate::{BANDS, BandSearch};

/// Metadata key of the settings in a store of similar documents.
pub const SIMILAR_STORE_KEY: &str = "similar";

/// Default similarity threshold.
pub const DEFAULT_SIMILARITY: f64 = 0.8;
/// Default recall at the similarity threshold.
pub const DEFAULT_RECALL: f64 = 0.95;

/// Preferred maximum number of differing bits in a band. A smaller number would need more bands for the same recall, and so more
/// disk space.
const INDEX_BAND_DISTANCE: u32 = 8;

/// Settings of a store of similar documents: similarity threshold, recall, band search, and whether texts are kept. They are
/// stored as metadata with the key [`SIMILAR_STORE_KEY`].
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
    /// Returns settings for a store without texts. The store finds each document whose similarity is at least `similar` with
    /// a probability of `recall` or more.
    ///
    /// A band is found if it differs in at most the [band distance](Self::band_distance). If a band distance of 8 bits or less is
    /// enough for the recall, the store indexes the smallest number of bands for which it is. Otherwise the store indexes all
    /// bands, and the band distance is greater than 8 bits.
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

    /// Returns the settings for a store that also keeps texts, so that similarities are exact.
    #[must_use]
    pub fn with_texts(self) -> Self {
        SimilarSettings { has_texts: true, ..self }
    }

    /// Returns the settings for a store without texts.
    pub(super) fn without_texts(self) -> Self {
        SimilarSettings { has_texts: false, ..self }
    }

    /// Returns the same settings, but keeping texts if and only if `other` keeps texts.
    pub(super) fn with_texts_as(self, other: &SimilarSettings) -> Self {
        SimilarSettings { has_texts: other.has_texts, ..self }
    }

    /// Reads the settings of a store; `None` if it has none, because it is a store of fingerprints.
    ///
    /// # Errors
    /// The errors of [`Snapshot::metadata`]; [`Error::Refused`] if the settings are from another version or damaged.
    pub fn from_store<F: Fingerprint>(store: &Snapshot<F>) -> Result<Option<Self>> {
        let Some(mark) = store.metadata(SIMILAR_STORE_KEY)? else { return Ok(None) };
        let settings = std::str::from_utf8(&mark).ok().and_then(SimilarSettings::parse);
        let settings =
            settings.filter(|settings| F::BITS == u64::BITS && store.distance() >= settings.band_distance());
        settings.map(Some).ok_or_else(|| {
            let (path, mark) = (store.path().display(), String::from_utf8_lossy(&mark));
            let found = excerpt(&mark);
            Error::Refused(if found.contains(" sketches ") {
                format!(
                    "{path}: created by an earlier version with another word hash: create the store again from its documents (found the \
                     mark `{SIMILAR_STORE_KEY}`: `{found}`)"
                )
            } else {
                format!(
                    "{path}: the mark `{SIMILAR_STORE_KEY}` does not say how similar documents are found: expected `{SIMILAR_STORE_KEY} S \
                     recall R bands N`, with or without ` texts`, found `{found}`"
                )
            })
        })
    }

    /// Reads the settings of a store, and checks that they are equivalent to these: equal except for the number of bands.
    /// Returns `None` for an empty store without settings, whose creation was interrupted.
    ///
    /// # Errors
    /// [`Error::Setting`] if the store has other settings or is a store of fingerprints; the errors of
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

    /// Parses the settings, as `Display` writes them.
    pub(super) fn parse(mark: &str) -> Option<Self> {
        let (mark, has_texts) = match mark.strip_suffix(" texts") {
            Some(mark) => (mark, true),
            None => (mark, false),
        };
        let words: Vec<&str> = mark.split(' ').collect();
        let ["similar", similar, "recall", recall, "bands", bands] = words[..] else { return None };
        let (similar, recall): (f64, f64) = (similar.parse().ok()?, recall.parse().ok()?);
        let bands: usize = bands.parse().ok()?;
        let is_sound =
            similar > 0.0 && similar <= 1.0 && recall > 0.0 && recall < 1.0 && (1..=BANDS).contains(&bands);
        let search = is_sound.then(|| search(similar, recall, bands)).flatten()?;
        Some(SimilarSettings { similar, recall, search, has_texts })
    }

    /// Returns the similarity threshold.
    pub fn min_similarity(&self) -> f64 {
        self.similar
    }

    /// Returns the required probability that a document exactly at the similarity threshold is found. The actual probability
    /// may be a little higher.
    pub fn recall(&self) -> f64 {
        self.recall
    }

    /// Whether the store keeps texts, so that similarities are exact.
    pub fn has_texts(&self) -> bool {
        self.has_texts
    }

    /// Whether the settings are equal except for the number of bands.
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

    /// Returns the number of bands (64-bit words) that the store indexes of each document's signature, counted from its beginning.
    pub fn bands(&self) -> usize {
        self.search.bands
    }

    /// Returns the maximum number of differing bits in a band, which is the distance of the store's queries.
    pub fn band_distance(&self) -> u32 {
        self.search.band_distance
    }

    /// Returns the maximum number of differing bits, out of 512, in the signatures of two documents. If more bits differ, their
    /// texts are not compared.
    pub fn signature_distance(&self) -> u32 {
        self.search.signature_distance
    }
}

/// Returns the search by `bands` bands that reaches the recall within a distance that stores support.
fn search(similar: f64, recall: f64, bands: usize) -> Option<BandSearch> {
    BandSearch::new(similar, recall, bands, u64::MAX_DISTANCE)
}

impl std::fmt::Display for SimilarSettings {
    /// Writes the settings in the format in which the store's metadata keeps them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SimilarSettings { similar, recall, has_texts, .. } = self;
        let texts = if *has_texts { " texts" } else { "" };
        write!(f, "{SIMILAR_STORE_KEY} {similar} recall {recall} bands {}{texts}", self.bands())
    }
}
