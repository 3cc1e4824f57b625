//! Settings of a store of similar documents.

use simstore::error::excerpt;
use simstore::{Error, Fingerprint, Result, Snapshot};

use crate::threshold::{check_recall, check_similarity, too_low_similarity};
use crate::{SKETCHES, SketchSearch};

/// The mark of a store that finds similar documents.
pub const SIMILAR_MARK: &str = "similar";

/// The default least similarity, and the default recall at it.
pub const DEFAULT_SIMILAR: f64 = 0.8;
/// See [`DEFAULT_SIMILAR`].
pub const DEFAULT_RECALL: f64 = 0.95;

/// A store is asked for few sketches within so many bits: fewer bits would take more sketches, and so more of the disk.
const DISTANCE: u32 = 8;

/// How a store finds similar documents: kept with it, under the mark [`SIMILAR_MARK`].
///
/// ```
/// use simstore_text::SimilarSettings;
///
/// let settings = SimilarSettings::new(0.8, 0.95)?;
/// assert_eq!((settings.sketches(), settings.distance()), (2, 8));
/// assert_eq!(settings.to_string(), "similar 0.8 recall 0.95 bands 2");
/// assert_eq!(settings.with_texts().to_string(), "similar 0.8 recall 0.95 bands 2 texts");
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimilarSettings {
    similar: f64,
    recall: f64,
    search: SketchSearch,
    has_texts: bool,
}

impl SimilarSettings {
    /// Texts of this similarity are found with a probability of `recall` or more, more similar ones with a greater one: by as
    /// few sketches as do within 8 bits, or else by all of them. Texts are not kept.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if they are no numbers between 0 and 1 (`similar` may be 1), or no distance that a store can
    /// have finds so many.
    pub fn new(similar: f64, recall: f64) -> Result<Self> {
        check_similarity(similar)?;
        check_recall(recall)?;
        let few = (1..=SKETCHES).find_map(|sketches| SketchSearch::new(similar, recall, sketches, DISTANCE));
        let search = few.or_else(|| search(similar, recall, SKETCHES));
        let search = search.ok_or_else(|| too_low_similarity(similar, recall))?;
        Ok(SimilarSettings { similar, recall, search, has_texts: false })
    }

    /// The same; the texts are kept too, so that these decide what is similar.
    #[must_use]
    pub fn with_texts(self) -> Self {
        SimilarSettings { has_texts: true, ..self }
    }

    /// The same without texts.
    pub(super) fn without_texts(self) -> Self {
        SimilarSettings { has_texts: false, ..self }
    }

    /// The same, with texts or without as others have it.
    pub(super) fn with_texts_as(self, other: &SimilarSettings) -> Self {
        SimilarSettings { has_texts: other.has_texts, ..self }
    }

    /// The settings of a store; `None` if it is one of fingerprints.
    ///
    /// # Errors
    /// Those of [`Snapshot::mark`]; [`Error::Refused`] if the store's mark is of another version, or damaged.
    pub fn of_store<F: Fingerprint>(store: &Snapshot<F>) -> Result<Option<Self>> {
        let Some(mark) = store.mark(SIMILAR_MARK)? else { return Ok(None) };
        let settings = std::str::from_utf8(&mark).ok().and_then(SimilarSettings::parse);
        let settings =
            settings.filter(|settings| F::BITS == u64::BITS && store.distance() >= settings.distance());
        settings.map(Some).ok_or_else(|| {
            let (path, mark) = (store.path().display(), String::from_utf8_lossy(&mark));
            let found = excerpt(&mark);
            Error::Refused(if found.contains(" sketches ") {
                format!(
                    "{path}: created by an earlier version with another word hash: create the store again from its documents (found the \
                     mark `{SIMILAR_MARK}`: `{found}`)"
                )
            } else {
                format!(
                    "{path}: the mark `{SIMILAR_MARK}` does not say how similar documents are found: expected `{SIMILAR_MARK} S \
                     recall R bands N`, with or without ` texts`, found `{found}`"
                )
            })
        })
    }

    /// Settings of an existing store, if its searches find the same documents as these settings. `None` for an empty store without
    /// settings: its creation was interrupted.
    ///
    /// # Errors
    /// [`Error::Setting`] if the store has other settings, or holds fingerprints. As [`SimilarSettings::of_store`].
    pub fn stored_in(self, store: &Snapshot<u64>) -> Result<Option<Self>> {
        let other = |setting, has, asked| {
            Err(Error::Setting { path: store.path().to_path_buf(), setting, has, asked })
        };
        match SimilarSettings::of_store(store)? {
            Some(has) if has.finds_as(&self) => Ok(Some(has)),
            Some(has) => other("settings", has.describe(), self.describe()),
            None if store.is_empty() && store.highest_id().is_none() => Ok(None),
            None => other("type", "`fingerprints`".to_owned(), "`similar documents`".to_owned()),
        }
    }

    /// The settings in a mark.
    pub(super) fn parse(mark: &str) -> Option<Self> {
        let (mark, has_texts) = match mark.strip_suffix(" texts") {
            Some(mark) => (mark, true),
            None => (mark, false),
        };
        let words: Vec<&str> = mark.split(' ').collect();
        let ["similar", similar, "recall", recall, "bands", sketches] = words[..] else { return None };
        let (similar, recall): (f64, f64) = (similar.parse().ok()?, recall.parse().ok()?);
        let sketches: usize = sketches.parse().ok()?;
        let is_sound = similar > 0.0
            && similar <= 1.0
            && recall > 0.0
            && recall < 1.0
            && (1..=SKETCHES).contains(&sketches);
        let search = is_sound.then(|| search(similar, recall, sketches)).flatten()?;
        Some(SimilarSettings { similar, recall, search, has_texts })
    }

    /// The least similarity that documents are found with.
    pub fn similar(&self) -> f64 {
        self.similar
    }

    /// The probability that documents of just that similarity are found, or a little less than it.
    pub fn recall(&self) -> f64 {
        self.recall
    }

    /// Whether the texts are kept, and so decide what is similar.
    pub fn has_texts(&self) -> bool {
        self.has_texts
    }

    /// Whether what they find is the same, however many sketches are looked up for that.
    pub(super) fn finds_as(&self, other: &SimilarSettings) -> bool {
        (self.similar, self.recall, self.has_texts) == (other.similar, other.recall, other.has_texts)
    }

    /// The settings in words, such as `similarity >= 0.8, recall 0.95, without texts`.
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

    /// Number of sketches of a document that are looked up: its first ones.
    pub fn sketches(&self) -> usize {
        self.search.joined
    }

    /// The distance of the store, within which sketches are looked up.
    pub fn distance(&self) -> u32 {
        self.search.distance
    }

    /// Texts are compared if the sketches differ in at most this many of all 512 bits.
    pub fn total(&self) -> u32 {
        self.search.total
    }
}

/// The search by so many sketches, within a distance that stores can have.
fn search(similar: f64, recall: f64, sketches: usize) -> Option<SketchSearch> {
    SketchSearch::new(similar, recall, sketches, u64::MAX_DISTANCE)
}

impl std::fmt::Display for SimilarSettings {
    /// As the mark has it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SimilarSettings { similar, recall, has_texts, .. } = self;
        let texts = if *has_texts { " texts" } else { "" };
        write!(f, "{SIMILAR_MARK} {similar} recall {recall} bands {}{texts}", self.sketches())
    }
}
