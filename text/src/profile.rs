//! Profiles: how a text becomes features and a fingerprint.

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::clean::{self, CleanedText, CleaningBuffers, DropReason};
use crate::feature_hash::FeatureHash;
use crate::hash_deduplicator::{HashDeduplicator, PrehashedSet};
use crate::idf_table::IdfTable;
use crate::majority::majority;
use crate::profile_name::ProfileName;
use crate::resources::Resources;
use crate::simhash::{Simhash, WeightedSums};
use crate::tokenize::{KeywordExtractor, Tokenizer, WordBuffer};
use crate::weights::{WeightLevels, Weighting};
use simstore::{Error, Fingerprint, Result};

/// Name of the default profile.
const DEFAULT_NAME: &str = "by-script,plain-text,simplified";
/// Seed with which a text without features is hashed as a whole. Differs from the seed for features, which is 0.
const TEXT_SEED: u64 = 1;
/// Name of [`Profile::shingles`], the profile that defines the similarity of texts other than source code.
const SHINGLES_NAME: &str = "words-3,segmented,plain-text,simplified,weights=none";
/// Name of [`Profile::exact`], the profile that treats only equal texts as similar.
const EXACT_NAME: &str = "exact";
/// Name of [`Profile::code`], the profile that defines the similarity of source code.
const CODE_NAME: &str = "code,weights=none";

/// The rules that turn a text into features. The name of a profile consists of a tokenizer and options, separated by commas.
///
/// | tokenizer | features |
/// |---|---|
/// | `by-script` | Chinese text: every character and word, as `words-1`. Other text: every two successive words, each pair once, as `words-2,weights=none` |
/// | `auto` | Chinese text: as `jieba-50`. Other text: as `words-2` |
/// | `words-N` | every N successive words, N from 1 to 8 |
/// | `code-N` | every N successive words of source code, N from 1 to 8. Identifiers, numbers and punctuation characters are words, white space is ignored, and nothing is cleaned. `code` is `code-7` |
/// | `chars-N` | every N successive characters, N from 1 to 16; a run of characters that are neither letters nor digits counts as one space |
/// | `jieba-N` | the N keywords with the greatest TF-IDF weights, N from 1 to 1000, with their weights; `jieba` is `jieba-50` |
/// | `phrases` | the words between two punctuation marks or empty lines |
/// | `sentences-N` | the N longest different sentences, N from 1 to 100 |
/// | `tokens` | the strings between white space |
/// | `features` | the text consists of lines `feature<TAB>weight`, used unchanged; weights are from 0 to 65535, by default 1 |
/// | `exact` | the whole text in Unicode's form NFC, and nothing is cleaned: only equal texts are similar |
/// | `main-text` | HTML: every three successive words of the main text; short for `words-3,segmented,main-text,simplified,weights=none`, and takes no further options |
/// | `pypi-simhash` and others | the features of another tool, bit for bit: a [`Preset`](crate::Preset), which takes no options |
///
/// | option of tokenizers that use words | |
/// |---|---|
/// | `segmented` | dictionaries segment Thai, Lao, Khmer and Burmese, which have no spaces between words, into words; by default each character is a word |
///
/// | option of `auto` and `jieba-N` | |
/// |---|---|
/// | `search` | words inside long words count too, as in jieba's search mode |
/// | `dictionary=CHECKSUM` | adds words to jieba's dictionary: [`Resources::dictionary`] |
/// | `stop-words=CHECKSUM` | excludes more words from the keywords: [`Resources::stop_words`] |
/// | `idf=CHECKSUM` | replaces jieba's IDF table: [`Resources::idf`]; other tokenizers need `weights=idf` or `weights=levels` too |
///
/// | cleaning, in this order | |
/// |---|---|
/// | `keep-front-matter` | keeps YAML front matter, which is dropped by default. Front matter starts with a first line `---` and is closed within 200 lines and 16 KiB. In between are only keys, list items, indented lines, comments and empty lines |
/// | `plain-text` | drops HTML tags, comments, scripts and styles. Drops targets of Markdown links, and languages of fenced code. Decodes character references. Ignores invisible characters, and reads typographic apostrophes as `'`. `docs/similarity.md` has examples |
/// | `html-text` | like `plain-text`, but always reads the text as HTML. All tags are dropped, and nothing is Markdown |
/// | `main-text` | like `html-text`, and omits elements for navigation, side notes, controls, hidden parts, headers and footers of the page |
/// | `no-nfkc` | skips the conversion to Unicode's NFKC form, which is on by default |
/// | `keep-case` | keeps upper and lower case; by default letters are converted to lower case |
/// | `simplified` | converts traditional Chinese characters to simplified ones, by OpenCC's tables |
/// | `only-han` | keeps only Han characters, and replaces others by a space |
/// | `strip-digits` | omits digits and other numerals |
///
/// | weights and hash | |
/// |---|---|
/// | `weights=tf` | a feature weighs 1 for each occurrence: the default except for keywords |
/// | `weights=idf` | a feature weighs its inverse document frequency for each occurrence, by the table `idf=CHECKSUM`. A feature missing from the table gets the table's median |
/// | `weights=levels` | the weight w of a feature (by TF-IDF for keywords or if a table is given) becomes its level. The level is ceil(5 w / max), where max is the largest weight |
/// | `weights=none` | every different feature weighs 1 |
/// | `hash=HASH` | the hash function for features, by default `xxh3` |
///
/// Words follow UAX #29, but each Han character is a word. A text with fewer than N words or characters is one feature. A text is
/// Chinese if at least 5% of its letters are Han and few are kana. If `jieba-N` finds no keyword, the text is tokenized as by
/// `words-2`. Keywords have at least two characters and are not stop words.
///
/// If a profile refers to files, its name contains their checksums. [`Profile::with_resources`] takes the files.
///
/// The default is `by-script,plain-text,simplified`. Its tokenizer replaced `auto` after a measurement of pairs of fingerprints
/// within a distance of 3. The data were 8,000 pairs of revisions for each kind of page. A found pair is true if its Jaccard
/// similarity is at least 0.8, and otherwise false. In English, `by-script` finds 88% of the true pairs instead of 90%, with a
/// thirtieth of the false pairs. In Chinese, it finds 95% instead of 92%, with the same number of false pairs; on paragraphs of
/// 20 to 100 characters, with a third of the false pairs. Such paragraphs have few keywords, or none that distinguish them.
///
/// ```
/// use simstore_text::Profile;
///
/// let profile: Profile = "chars-4,plain-text".parse()?;
/// assert_eq!(profile.to_string(), "chars-4,plain-text");
/// assert_eq!(Profile::default().to_string(), "by-script,plain-text,simplified");
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone)]
pub struct Profile {
    name: ProfileName,
    keywords: Arc<KeywordExtractor>,
    idf: Option<Arc<IdfTable>>,
}

impl Profile {
    /// Returns the profile with this name and these files. The checksums of files that the name does not mention are added to the
    /// profile's name.
    ///
    /// ```
    /// use simstore_text::{Profile, Resource, Resources};
    ///
    /// let dictionary = Some(Resource::new("words.txt", "石墨烯量子点\n"));
    /// let resources = Resources { dictionary, ..Resources::default() };
    /// let profile = Profile::with_resources("jieba-20", &resources)?;
    /// assert_eq!(profile.to_string(), "jieba-20,dictionary=6c3035722846a942");
    /// assert!(Profile::with_resources(&profile.to_string(), &Resources::default()).is_err());
    /// # Ok::<(), simstore::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::BadArgument`] if the name is unknown or inconsistent, if a file that the name mentions is missing or has another
    ///   checksum, or if the profile does not use one of the files.
    /// - [`Error::BadInput`] if a line of a file is malformed.
    pub fn with_resources(name: &str, resources: &Resources) -> Result<Profile> {
        let name = ProfileName::parse(name, resources)?;
        let idf = resources.idf.as_ref().map(IdfTable::parse).transpose()?;
        let (dictionary, stop_words) = (resources.dictionary.as_ref(), resources.stop_words.as_ref());
        let keywords = KeywordExtractor::new(&name.cleaning, dictionary, stop_words, idf.as_ref())?;
        Ok(Profile { name, keywords: Arc::new(keywords), idf: idf.map(Arc::new) })
    }

    /// Returns the profile that defines the similarity of two texts. The similarity is the number of shingles in both texts,
    /// divided by the number of shingles in at least one text (the [`jaccard`](fn@crate::jaccard) similarity of their
    /// [feature sets](Profile::feature_set)).
    ///
    /// Shingles are every three successive words. A Han character or kana is a word; dictionaries segment Thai, Lao, Khmer and
    /// Burmese into words. A word contains a letter or a digit. Punctuation is ignored, so `C++` and `C#` are the same word,
    /// and so are `-5` and `+5`. Source code has its own profile, [`Profile::code`]. Markup and front matter are dropped,
    /// letters are converted to lower case, and traditional Chinese characters to simplified ones.
    ///
    /// The name is `words-3,segmented,plain-text,simplified,weights=none`.
    ///
    /// ```
    /// use simstore_text::{Profile, jaccard};
    ///
    /// let shingles = Profile::shingles();
    /// let set = |text| shingles.feature_set(text);
    /// assert_eq!(set("To be, or *not* to be").len(), 4);
    /// assert_eq!(jaccard(&set("to be or not to be"), &set("to be or not")), 0.5);
    /// assert_eq!(jaccard(&set("漢語的資料庫"), &set("汉语的资料库")), 1.0);
    /// ```
    pub fn shingles() -> Profile {
        Profile::built_in(SHINGLES_NAME)
    }

    /// Returns the profile that defines the similarity of source code, as [`Profile::shingles`] does for other texts. Identifiers,
    /// numbers and punctuation characters are words, case matters, and white space is ignored. The name is `code-7,weights=none`.
    ///
    /// ```
    /// use simstore_text::{Profile, jaccard};
    ///
    /// let similarity = |profile: Profile| jaccard(&profile.feature_set("x = -5"), &profile.feature_set("X = +5"));
    /// assert_eq!(similarity(Profile::shingles()), 1.0);
    /// assert_eq!(similarity(Profile::code()), 0.0);
    /// ```
    pub fn code() -> Profile {
        Profile::built_in(CODE_NAME)
    }

    /// Returns the profile that treats only equal texts as similar: equal bytes in Unicode's normalisation form NFC. The name
    /// is `exact`.
    ///
    /// ```
    /// use simstore_text::{Profile, jaccard};
    ///
    /// let exact = Profile::exact();
    /// let similarity = |a, b| jaccard(&exact.feature_set(a), &exact.feature_set(b));
    /// assert_eq!(similarity("C++", "C#"), 0.0);
    /// assert_eq!(similarity("caf\u{e9}", "cafe\u{301}"), 1.0);
    /// ```
    pub fn exact() -> Profile {
        Profile::built_in(EXACT_NAME)
    }

    /// Returns the built-in profile with this name. Panics if the name is invalid or the profile needs files.
    fn built_in(name: &str) -> Profile {
        name.parse().expect("the name of a built-in profile is valid")
    }

    /// Returns the fingerprint of a text. `None` if no feature has a weight above 0, for example because the text has no letters
    /// and no digits.
    ///
    /// The profile of a [`Preset`](crate::Preset) returns a fingerprint for every text, or `None` if `F` is not [`Profile::bits`]
    /// wide.
    pub fn fingerprint<F: Fingerprint>(&self, text: &str) -> Option<Simhash<F>> {
        self.fingerprint_and_check(text).0
    }

    /// Like [`Profile::fingerprint`], but also returns whether cleaning dropped more than half of the text's words. Words in front
    /// matter are not counted. For HTML, the flag is always `false`.
    ///
    /// ```
    /// use simstore_text::Profile;
    ///
    /// let is_dropped = |text: &str| Profile::default().fingerprint_and_check::<u64>(text).1;
    /// assert!(!is_dropped("[two words](a.md) and more"));
    /// assert!(is_dropped("[two words](a.md 'and a title of many words')"));
    /// assert!(!is_dropped("<p title='an attribute of many words'>two words"));
    /// ```
    pub fn fingerprint_and_check<F: Fingerprint>(&self, text: &str) -> (Option<Simhash<F>>, bool) {
        if let Tokenizer::Preset(preset) = self.name.tokenizer {
            return (preset.fingerprint(text), false);
        }
        if F::BITS == 64
            && let Some((simhash, lost_most)) = self.fingerprint_by_majority(text)
        {
            let widen = |Simhash { fingerprint, features }| Simhash {
                fingerprint: F::from_u64(fingerprint),
                features,
            };
            return (simhash.map(widen), lost_most);
        }
        let mut sums = WeightedSums::new();
        let hash = self.name.hash;
        let lost_most = self.visit_and_check(text, |feature, weight| sums.add(hash.hash(feature), weight));
        (sums.finish(), lost_most)
    }

    /// Computes the result of [`Profile::fingerprint_and_check`] by a fast method for 64-bit fingerprints and features of equal
    /// weight. Returns `None` if the profile or the text needs the general method.
    fn fingerprint_by_majority(&self, text: &str) -> Option<(Option<Simhash<u64>>, bool)> {
        let ProfileName { tokenizer, is_segmented: segmented, weights, hash, .. } = self.name;
        let has_equal_weights = matches!(weights, Weighting::ByTokenizer | Weighting::Uniform)
            && !matches!(tokenizer, Tokenizer::Features | Tokenizer::Jieba(_));
        if !has_equal_weights || hash != FeatureHash::Xxh3 {
            return None;
        }
        with_buffers(text, |thread_buffers| {
            let ThreadBuffers { buffers, word_buffer, words, features, deduplicator } = thread_buffers;
            let cleaned = self.clean(text, buffers);
            if tokenizer == Tokenizer::Auto && clean::is_mostly_han(&cleaned.text) {
                return None;
            }
            features.clear();
            let counts_once =
                tokenizer.push_unit_weight_hashes(&cleaned.text, segmented, word_buffer, features);
            words.clone_from(features);
            deduplicator.keep_first(words);
            let counted =
                if counts_once || weights == Weighting::Uniform { words.as_slice() } else { features };
            let features = u32::try_from(words.len()).unwrap_or(u32::MAX);
            let simhash = (!counted.is_empty()).then(|| Simhash { fingerprint: majority(counted), features });
            Some((simhash, cleaned.has_lost_most_words()))
        })
    }

    /// Visits the features that [`Profile::fingerprint`] hashes, with their weights. A feature may occur several times.
    ///
    /// The unit of the weights is 2^-24 if they come from an IDF table, 2^-16 if they come from the `features` tokenizer, and
    /// otherwise 1.
    ///
    /// ```
    /// use simstore_text::Profile;
    ///
    /// let mut features = Vec::new();
    /// let profile: Profile = "words-2".parse()?;
    /// profile.visit_features("To be, or not", |feature, _weight| features.push(feature.to_owned()));
    /// assert_eq!(features, ["to be", "be or", "or not"]);
    /// # Ok::<(), simstore::Error>(())
    /// ```
    pub fn visit_features(&self, text: &str, visit: impl FnMut(&str, u32)) {
        self.visit_and_check(text, visit);
    }

    /// Like [`Profile::visit_features`], but also returns whether cleaning dropped more than half of the text's words.
    fn visit_and_check(&self, text: &str, mut visit: impl FnMut(&str, u32)) -> bool {
        let keywords = self.name.tokenizer.keyword_count();
        match self.name.weights {
            Weighting::ByTokenizer | Weighting::Idf => self.visit_weighted(text, keywords, visit),
            Weighting::Levels => {
                let mut levels = WeightLevels::default();
                let lost_most =
                    self.visit_weighted(text, keywords, |feature, weight| levels.add(feature, weight));
                levels.visit(visit);
                lost_most
            }
            Weighting::Uniform => {
                let mut seen = PrehashedSet::default();
                self.visit_weighted(text, keywords, |feature, _| {
                    // Two features with the same 64-bit hash are too rare to matter.
                    if seen.insert(xxh3_64(feature.as_bytes())) {
                        visit(feature, 1);
                    }
                })
            }
        }
    }

    /// Visits the pieces of a text that cleaning drops, each with the reason. For an HTML document, only front matter is visited.
    ///
    /// ```
    /// use simstore_text::{DropReason, Profile};
    ///
    /// let mut pieces = Vec::new();
    /// Profile::shingles().visit_dropped("<b>To be</b>, or [not](https://example.org)", |rule, piece| pieces.push((rule, piece)));
    /// let link = (DropReason::LinkTarget, "(https://example.org)");
    /// assert_eq!(pieces, [(DropReason::Tag, "<b>"), (DropReason::Tag, "</b>"), link]);
    /// ```
    pub fn visit_dropped<'a>(&self, text: &'a str, visit: impl FnMut(DropReason, &'a str)) {
        if !self.name.tokenizer.skips_cleaning() {
            self.name.cleaning.clean_and_visit(text, &mut CleaningBuffers::default(), visit);
        }
    }

    /// Returns the distinct features of a text as 64-bit hashes, in ascending order. Weights are ignored. The Jaccard
    /// similarity of two texts is computed from these sets. `format-spec/signature.md` defines the hashes.
    ///
    /// If a text has no features, such as `?!`, the whole trimmed text becomes one feature, hashed with seed 1. So the text is
    /// similar only to the same text. A text of only white space has an empty set.
    ///
    /// ```
    /// use simstore_text::Profile;
    ///
    /// let profile: Profile = "words-1".parse()?;
    /// assert_eq!(profile.feature_set("A rose is a rose").len(), 3);
    /// assert_eq!(profile.feature_set("?!"), profile.feature_set(" ?!\n"));
    /// assert_ne!(profile.feature_set("?!"), profile.feature_set("!!"));
    /// assert!(profile.feature_set(" ").is_empty());
    /// # Ok::<(), simstore::Error>(())
    /// ```
    pub fn feature_set(&self, text: &str) -> Vec<u64> {
        let mut features = self.with_distinct_features(text, |features, _| features.to_vec());
        features.sort_unstable();
        features
    }

    /// Calls `take` with the hashes of [`Profile::feature_set`], in the order of their first occurrence in the text, and with a
    /// flag that says whether cleaning dropped most words. The hashes are in a buffer that the thread reuses for its next text.
    pub(crate) fn with_distinct_features<T>(
        &self,
        text: &str,
        take: impl FnOnce(&mut [u64], bool) -> T,
    ) -> T {
        with_buffers(text, |thread_buffers| {
            let ThreadBuffers { buffers, words, features, deduplicator, .. } = thread_buffers;
            features.clear();
            let lost_most = self.push_features(text, buffers, words, features);
            deduplicator.keep_first(features);
            let text = text.trim();
            if features.is_empty() && !text.is_empty() {
                features.push(xxh3_64_with_seed(text.as_bytes(), TEXT_SEED));
            }
            take(features, lost_most)
        })
    }

    /// Cleans a text, and appends the hashes of its features to `features`. Returns whether cleaning dropped most words. `buffers`
    /// and `words` are working memory.
    pub(crate) fn push_features(
        &self,
        text: &str,
        buffers: &mut CleaningBuffers,
        words: &mut Vec<u64>,
        features: &mut Vec<u64>,
    ) -> bool {
        let ProfileName { tokenizer, is_segmented: segmented, .. } = self.name;
        let cleaned = self.clean(text, buffers);
        let push = |keyword: &str, _| features.push(xxh3_64(keyword.as_bytes()));
        if !self.visit_keywords(&cleaned.text, tokenizer.keyword_count(), push) {
            tokenizer.push_hashes(&cleaned.text, segmented, words, features);
        }
        cleaned.has_lost_most_words()
    }

    /// Returns the width of fingerprints in bits if the profile supports only one width; otherwise `None`.
    ///
    /// ```
    /// use simstore_text::Profile;
    ///
    /// let preset: Profile = "string-hash-128".parse()?;
    /// assert_eq!(preset.bits(), Some(128));
    /// assert_eq!(Profile::default().bits(), None);
    /// # Ok::<(), simstore::Error>(())
    /// ```
    pub fn bits(&self) -> Option<u32> {
        match self.name.tokenizer {
            Tokenizer::Preset(preset) => Some(preset.bits()),
            _ => None,
        }
    }

    /// Checks that the profile supports fingerprints of `wanted` bits.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the profile supports only another width.
    pub fn check_bits(&self, wanted: u32) -> simstore::Result<()> {
        match self.bits() {
            Some(bits) if bits != wanted => Err(simstore::Error::BadArgument(format!(
                "profile {self} has fingerprints of {bits} bits, not {wanted}: give option `bits` {bits}"
            ))),
            _ => Ok(()),
        }
    }

    /// Visits all features of a text without their weights. If the features are keywords, visits all words of the text that can
    /// be keywords, not only the heaviest.
    pub(crate) fn visit_unweighted(&self, text: &str, mut visit: impl FnMut(&str)) {
        self.visit_weighted(text, usize::MAX, |feature, _| visit(feature));
    }

    /// Visits the features of a text, with their weights by the tokenizer or the IDF table. If the features are keywords, visits
    /// at most `keywords` of them. Returns whether cleaning dropped most words.
    fn visit_weighted(&self, text: &str, keywords: usize, mut visit: impl FnMut(&str, u32)) -> bool {
        let ProfileName { tokenizer, is_segmented: segmented, weights, .. } = self.name;
        let mut buffers = CleaningBuffers::default();
        let cleaned = self.clean(text, &mut buffers);
        let text = &cleaned.text;
        if !self.visit_keywords(text, keywords, &mut visit) {
            match self.idf.as_deref().filter(|_| matches!(weights, Weighting::Idf | Weighting::Levels)) {
                Some(idf) => {
                    tokenizer.visit(text, segmented, |feature, _| visit(feature, idf.units(feature)));
                }
                None => tokenizer.visit(text, segmented, visit),
            }
        }
        cleaned.has_lost_most_words()
    }

    pub(crate) fn clean<'a>(&self, text: &'a str, buffers: &'a mut CleaningBuffers) -> CleanedText<'a> {
        match self.name.tokenizer.skips_cleaning() {
            true => CleanedText::from_uncleaned(text),
            false => self.name.cleaning.clean(text, buffers),
        }
    }

    /// Visits at most `count` keywords of a cleaned text, if the profile uses keywords for this text. Returns whether any visited
    /// keyword has a weight above 0.
    fn visit_keywords(&self, text: &str, count: usize, mut visit: impl FnMut(&str, u32)) -> bool {
        let uses_keywords = match self.name.tokenizer {
            Tokenizer::Auto => clean::is_mostly_han(text),
            Tokenizer::Jieba(_) => true,
            _ => false,
        };
        let mut found = false;
        if uses_keywords {
            self.keywords.visit(text, count, self.name.is_search_mode, |word, weight| {
                found |= weight > 0;
                visit(word, weight);
            });
        }
        found
    }
}

/// Maximum length in bytes of a text after which a thread keeps its buffers for the next text. After a longer text, the buffers are
/// freed.
const KEPT_TEXT_BYTES_MAX: usize = 1 << 20;

/// Working memory for one text, which a thread reuses for its next text.
#[derive(Default)]
struct ThreadBuffers {
    buffers: CleaningBuffers,
    word_buffer: WordBuffer,
    words: Vec<u64>,
    features: Vec<u64>,
    deduplicator: HashDeduplicator,
}

thread_local! {
    static BUFFERS: RefCell<ThreadBuffers> = RefCell::default();
}

/// Calls `work` with the buffers of this thread. `text` is the text that `work` processes: if it is longer than
/// [`KEPT_TEXT_BYTES_MAX`], the buffers are freed afterwards.
fn with_buffers<T>(text: &str, work: impl FnOnce(&mut ThreadBuffers) -> T) -> T {
    BUFFERS.with_borrow_mut(|thread_buffers| {
        let done = work(thread_buffers);
        if text.len() > KEPT_TEXT_BYTES_MAX {
            *thread_buffers = ThreadBuffers::default();
        }
        done
    })
}

impl Default for Profile {
    fn default() -> Self {
        Profile::built_in(DEFAULT_NAME)
    }
}

impl PartialEq for Profile {
    /// Compares the names, because profiles with the same name make the same fingerprints.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Profile {}

impl FromStr for Profile {
    type Err = Error;

    /// Parses the name of a profile that needs no files.
    ///
    /// # Errors
    /// The errors of [`Profile::with_resources`].
    fn from_str(name: &str) -> Result<Self> {
        Profile::with_resources(name, &Resources::default())
    }
}

impl fmt::Display for Profile {
    /// Writes the profile's name in canonical form: with the options in a fixed order, and without default options.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Profile").field(&self.to_string()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn features(profile: &str, text: &str) -> Vec<String> {
        let mut features = Vec::new();
        let profile: Profile = profile.parse().unwrap();
        profile.visit_features(text, |feature, _| features.push(feature.to_owned()));
        features
    }

    #[test]
    fn auto_chooses_by_script() {
        assert_eq!(features("auto", "Near duplicates"), ["near duplicates"]);
        assert_eq!(features("auto", "近似重复 文档"), features("jieba-50", "近似重复 文档"));
        assert_ne!(features("auto", "近似重复 文档"), features("words-2", "近似重复 文档"));
    }

    #[test]
    fn by_script_takes_characters_or_different_pairs_of_words() {
        assert_eq!(features("by-script", "a rose is a rose"), ["a rose", "rose is", "is a"]);
        assert_eq!(features("by-script", "重复 text 重复"), ["重", "复", "text", "重", "复"]);
        // Japanese text is not treated as Chinese.
        assert_eq!(features("by-script", "漢字かな"), features("words-2", "漢字かな"));
        // A text without keywords is tokenized like other texts.
        assert_eq!(features("by-script", "我 的 书"), ["我", "的", "书"]);
    }

    #[test]
    fn without_keywords_words_count() {
        assert_eq!(features("jieba-5", "我 的 书"), ["我 的", "的 书"]);
        assert_eq!(features("jieba-5", "the"), ["the"]);
    }

    #[test]
    fn options() {
        let text = "\u{feff}---\nid: x\n---\n[Text](target)";
        assert_eq!(features("words-1", text), ["text", "target"]);
        assert_eq!(features("words-1,plain-text", text), ["text"]);
        assert_eq!(features("words-1,keep-front-matter", text), ["id", "x", "text", "target"]);
        assert_eq!(features("words-1", "---\nid: x\n---\n"), Vec::<String>::new());
    }

    #[test]
    fn no_features_no_fingerprint() {
        for profile in ["auto", "by-script", "words-1", "chars-3", "jieba-50"] {
            let profile: Profile = profile.parse().unwrap();
            for text in ["", " \n", "?!", "\u{1f600}\u{1f600}", "---\nid: 1\n---\n"] {
                assert_eq!(profile.fingerprint::<u64>(text), None, "{profile} {text:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in any::<String>(), mixed in "([a-z ]|[\u{4e00}-\u{4fff}]|[<>&\\[\\]()`~\n_-]|\\PC){0,80}") {
            for name in ["auto", "by-script", "words-3,plain-text", "chars-4", "jieba-10,plain-text"] {
                let profile: Profile = name.parse().unwrap();
                for text in [&text, &mixed] {
                    prop_assert_eq!(profile.fingerprint::<u64>(text), profile.fingerprint::<u64>(text));
                    profile.fingerprint::<u128>(text);
                }
            }
        }
    }
}
