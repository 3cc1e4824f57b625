//! How a store finds similar documents, and what it keeps of each.

use simstore::{Error, Fingerprint, Result, Snapshot};

use super::Sample;
use crate::{SketchSearch, sketch};

/// The mark of a store that finds similar documents.
pub const SIMILAR_MARK: &str = "similar";

/// The similarity from which documents are found, where nothing else is said, and the recall there.
pub const DEFAULT_SIMILAR: f64 = 0.8;
/// See [`DEFAULT_SIMILAR`].
pub const DEFAULT_RECALL: f64 = 0.95;

const SKETCHES: usize = 4;
const SAMPLE: usize = 128;

/// The sketches of texts with fewer features are not reliable.
const SMALL: usize = 32;

/// How a store finds similar documents: kept with it, under the mark [`SIMILAR_MARK`].
///
/// ```
/// use simstore_text::SimilarSettings;
///
/// let settings = SimilarSettings::new(0.8, 0.95)?;
/// assert_eq!((settings.distance(), settings.sketches()), (10, 4));
/// assert_eq!(settings.to_string(), "similar 0.8 recall 0.95 sketches 4 sample 128");
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimilarSettings {
    similar: f64,
    recall: f64,
    sketches: usize,
    sample: usize,
    distance: u32,
}

/// What a store keeps of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// [Sketches](fn@crate::sketch) of its features; none if these are few.
    sketches: Vec<u64>,
    /// Of some of the features, if these are few: a document that is as similar as the store asks for has one of them too.
    keys: Vec<u64>,
    sample: Sample,
    distance: u32,
}

/// What is looked up of a document in a store: it may be similar to all that is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup<'a> {
    /// Within the distance of the settings; none of a document of so few features that they are unreliable.
    pub sketches: &'a [u64],
    /// The same fingerprints alone, for a document of few features.
    pub keys: Vec<u64>,
}

impl SimilarSettings {
    /// Texts of this similarity are found with a probability of `recall` or more, more similar ones with a greater one.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if they are no numbers between 0 and 1 (`similar` may be 1), or no distance that a store can
    /// have finds so many.
    pub fn new(similar: f64, recall: f64) -> Result<Self> {
        if !(similar > 0.0 && similar <= 1.0) {
            return Err(Error::BadArgument(
                "option `similar`: expected a number above 0, up to 1".to_owned(),
            ));
        }
        if !(recall > 0.0 && recall < 1.0) {
            return Err(Error::BadArgument("option `recall`: expected a number between 0 and 1".to_owned()));
        }
        SimilarSettings::with(similar, recall, SKETCHES, SAMPLE).ok_or_else(|| {
            let least = (1..100).map(|percent| f64::from(percent) / 100.0);
            let least = least.into_iter().find(|&least| search(least, recall, SKETCHES).is_some());
            Error::BadArgument(format!(
                "a store cannot find documents that are only {similar} similar with a probability of {recall}: give option \
                 `similar` {} or more, or a smaller option `recall`",
                least.unwrap_or(1.0)
            ))
        })
    }

    fn with(similar: f64, recall: f64, sketches: usize, sample: usize) -> Option<Self> {
        let distance = search(similar, recall, sketches)?.distance;
        Some(SimilarSettings { similar, recall, sketches, sample, distance })
    }

    /// Those of a store; `None` if it is of fingerprints.
    ///
    /// # Errors
    /// Those of [`Snapshot::mark`]; [`Error::Refused`] if the store's mark is of another version, or damaged.
    pub fn of_store<F: Fingerprint>(store: &Snapshot<F>) -> Result<Option<Self>> {
        let Some(mark) = store.mark(SIMILAR_MARK)? else { return Ok(None) };
        let settings = std::str::from_utf8(&mark).ok().and_then(SimilarSettings::parse);
        let settings =
            settings.filter(|settings| F::BITS == u64::BITS && store.distance() >= settings.distance);
        settings.map(Some).ok_or_else(|| {
            Error::Refused(format!(
                "{}: the mark `{SIMILAR_MARK}` does not say how similar documents are found: expected `{}`, found `{}`",
                store.path().display(),
                "similar S recall R sketches N sample K",
                String::from_utf8_lossy(&mark)
            ))
        })
    }

    fn parse(mark: &str) -> Option<Self> {
        let words: Vec<&str> = mark.split(' ').collect();
        let ["similar", similar, "recall", recall, "sketches", sketches, "sample", sample] = words[..] else {
            return None;
        };
        let (similar, recall): (f64, f64) = (similar.parse().ok()?, recall.parse().ok()?);
        let (sketches, sample): (usize, usize) = (sketches.parse().ok()?, sample.parse().ok()?);
        let is_sound = similar > 0.0
            && similar <= 1.0
            && recall > 0.0
            && recall < 1.0
            && (1..=crate::MAX_SKETCHES).contains(&sketches)
            && (1..=1024).contains(&sample);
        if is_sound { SimilarSettings::with(similar, recall, sketches, sample) } else { None }
    }

    /// The least similarity that documents are found with.
    pub fn similar(&self) -> f64 {
        self.similar
    }

    /// The probability that documents of just that similarity are found, or a little less than it.
    pub fn recall(&self) -> f64 {
        self.recall
    }

    /// Whether what they find is the same, however many sketches and features are kept for that.
    pub(crate) fn finds_as(&self, other: &SimilarSettings) -> bool {
        (self.similar, self.recall) == (other.similar, other.recall)
    }

    /// Number of sketches of a document.
    pub fn sketches(&self) -> usize {
        self.sketches
    }

    /// Features of a document that are kept, at most.
    pub fn sample(&self) -> usize {
        self.sample
    }

    /// The distance within which sketches are looked for: that of the store.
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// What is looked up of a document that is known by some of its [sketches](fn@crate::sketch), as many as the store has or more, and
    /// by its features, ascending, if these are few.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if there are fewer sketches.
    pub fn lookup<'a>(&self, sketches: &'a [u64], features: Option<&[u64]>) -> Result<Lookup<'a>> {
        let first = sketches.get(..self.sketches).ok_or_else(|| {
            Error::BadArgument(format!("{} sketches, where the store has {}", sketches.len(), self.sketches))
        })?;
        let kept = features.and_then(|features| self.keep(features));
        let is_small = features.is_some_and(|features| features.len() < SMALL);
        Ok(Lookup {
            sketches: if is_small { &[] } else { first },
            keys: kept.map_or_else(Vec::new, |kept| kept.keys),
        })
    }

    /// What is kept of a document of these features, ascending; `None` if there are none.
    pub fn keep(&self, features: &[u64]) -> Option<Kept> {
        if features.is_empty() {
            return None;
        }
        let mut sketches = Vec::new();
        if features.len() >= SMALL {
            sketches.resize(self.sketches, 0);
            sketch(features, &mut sketches);
        }
        let is_few = features.len() as f64 * self.similar <= SMALL as f64;
        // Two sets of x and y members that are s similar have s max(x, y) in common: see format-spec/similar.md.
        let common = (features.len() as f64 * self.similar - 1e-9).ceil() as usize;
        let first = &features[..if is_few { features.len() + 1 - common.max(1) } else { 0 }];
        let keys = first.iter().map(|&member| crate::sketch::key(member)).collect();
        Some(Kept { sketches, keys, sample: Sample::new(features, self.sample), distance: self.distance })
    }
}

/// The search by so many sketches, within a distance that stores can have.
fn search(similar: f64, recall: f64, sketches: usize) -> Option<SketchSearch> {
    SketchSearch::new(similar, recall, sketches, sketches, u64::MAX_DISTANCE)
}

impl std::fmt::Display for SimilarSettings {
    /// As the mark has it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SimilarSettings { similar, recall, sketches, sample, .. } = self;
        write!(f, "{SIMILAR_MARK} {similar} recall {recall} sketches {sketches} sample {sample}")
    }
}

impl Kept {
    /// The fingerprints that a store has of the document: at least one.
    pub fn fingerprints<F: Fingerprint>(&self) -> impl Iterator<Item = F> + '_ {
        self.sketches.iter().chain(&self.keys).map(|&bits| F::from_u128(bits.into()))
    }

    /// What a store keeps with the document's id.
    pub fn note(&self) -> Vec<u8> {
        self.sample.to_bytes()
    }

    /// The sample of the document's features.
    pub fn sample(&self) -> &Sample {
        &self.sample
    }

    /// The ids of stored documents that may be similar, ascending: where a sketch is within the store's distance, or, of
    /// those with few features, where one of these is the same.
    ///
    /// # Errors
    /// As [`Snapshot::query`].
    pub fn candidates<F: Fingerprint>(&self, store: &Snapshot<F>) -> Result<Vec<u64>> {
        let (mut matches, mut ids) = (Vec::new(), Vec::new());
        let sketches = self.sketches.iter().map(|&sketch| (sketch, self.distance));
        for (fingerprint, distance) in sketches.chain(self.keys.iter().map(|&key| (key, 0))) {
            store.query_into(F::from_u128(fingerprint.into()), distance, &mut matches)?;
            ids.extend(matches.iter().filter_map(|found| found.id));
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}
