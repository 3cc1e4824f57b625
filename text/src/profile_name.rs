//! Profile names: parsing, validation and the canonical form.

use std::fmt;
use std::str::FromStr;

use crate::clean::{Cleaning, Markup};
use crate::feature_hash::FeatureHash;
use crate::presets::Preset;
use crate::resources::{Checksum, Resource, Resources};
use crate::tokenize::{DEFAULT_CODE_WORDS, DEFAULT_KEYWORD_COUNT, Tokenizer};
use crate::weights::Weighting;
use simstore::error::did_you_mean;
use simstore::error::excerpt;
use simstore::{Error, Result};

/// A parsed profile name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ProfileName {
    pub(crate) tokenizer: Tokenizer,
    /// Whether jieba's search mode is used, in which words inside long words count too.
    pub(crate) is_search_mode: bool,
    /// Whether dictionaries segment Thai, Lao, Khmer and Burmese into words. Otherwise each character is a word.
    pub(crate) is_segmented: bool,
    pub(crate) dictionary: Option<Checksum>,
    pub(crate) stop_words: Option<Checksum>,
    pub(crate) idf: Option<Checksum>,
    pub(crate) cleaning: Cleaning,
    pub(crate) weights: Weighting,
    pub(crate) hash: FeatureHash,
}

const TOKENIZER_LIST: &str = "`by-script`, `auto`, `words-1` to `words-8`, `code-1` to `code-8`, `chars-1` to `chars-16`, \
    `jieba-1` to `jieba-1000`, `phrases`, `sentences-1` to `sentences-100`, `tokens`, `features`, `exact`, `main-text`, or a preset: `pypi-simhash`, `seomoz-simhash`, \
    `yanyiwu-simhash`, `string-hash-64`, `string-hash-128` or `practice-report`";

const OPTION_LIST: &str = "`search`, `segmented`, `dictionary=CHECKSUM`, `stop-words=CHECKSUM`, `idf=CHECKSUM`, `keep-front-matter`, \
    `plain-text`, `html-text`, `main-text`, `no-nfkc`, `keep-case`, `simplified`, `only-han`, `strip-digits`, \
    `weights=WEIGHTS` or `hash=HASH`";

/// Short names of profiles, each with the full name.
const ALIASES: [(&str, &str); 1] = [("main-text", "words-3,segmented,main-text,simplified,weights=none")];

/// Options that choose how markup is removed. A profile name contains at most one of them.
const MARKUP_OPTIONS: [(&str, Markup); 3] =
    [("plain-text", Markup::PlainText), ("html-text", Markup::HtmlText), ("main-text", Markup::MainText)];

/// Options that earlier versions accepted, each with the option that replaces it.
const REPLACED_OPTIONS: [(&str, &str); 2] = [("strip-markup", "plain-text"), ("strip-html", "html-text")];

/// Name of [`Tokenizer::ByScript`]. It is parsed separately, because no number follows its hyphen, unlike in `words-3`.
const BY_SCRIPT: &str = "by-script";

fn bad_argument<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::BadArgument(reason.into()))
}

impl ProfileName {
    /// Parses and checks a profile name, and adds the checksums of the `resources` that the name does not mention.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the name is malformed or inconsistent, or if a file that the name mentions is missing or has
    /// another checksum.
    pub(crate) fn parse(text: &str, resources: &Resources) -> Result<ProfileName> {
        let mut name: ProfileName = text.parse()?;
        for (named, file, ..) in name.files(resources) {
            *named = named.or(file.map(Resource::checksum));
        }
        name.check()?;
        for (named, file, what, option) in name.files(resources) {
            match (*named, file) {
                (Some(named), None) => {
                    return bad_argument(format!(
                        "text profile `{}` needs the {what} with checksum {named}: give the file with option `{option}`",
                        excerpt(text)
                    ));
                }
                (Some(named), Some(file)) if named != file.checksum() => {
                    return bad_argument(format!(
                        "text profile `{}` needs the {what} with checksum {named}, but {} has checksum {}",
                        excerpt(text),
                        file.path().display(),
                        file.checksum()
                    ));
                }
                _ => {}
            }
        }
        Ok(name)
    }

    /// Returns four values for each kind of file (dictionary, stop words, IDF table): its checksum in the name, the file in
    /// `resources`, a description of the kind, and the name of the option that takes such a file.
    fn files<'a, 'b>(
        &'a mut self,
        resources: &'b Resources,
    ) -> [(&'a mut Option<Checksum>, Option<&'b Resource>, &'static str, &'static str); 3] {
        [
            (&mut self.dictionary, resources.dictionary.as_ref(), "dictionary", "dictionary"),
            (&mut self.stop_words, resources.stop_words.as_ref(), "list of stop words", "stop_words"),
            (&mut self.idf, resources.idf.as_ref(), "IDF table", "idf"),
        ]
    }

    /// Whether the tokenizer selects keywords, at least in Chinese texts.
    fn uses_keywords(&self) -> bool {
        matches!(self.tokenizer, Tokenizer::Auto | Tokenizer::Jieba(_))
    }

    /// Returns an error if options contradict each other or do not apply to the tokenizer.
    fn check(&self) -> Result<()> {
        let ProfileName { tokenizer, cleaning, weights, .. } = *self;
        if matches!(tokenizer, Tokenizer::Preset(_))
            && *self != (ProfileName { tokenizer, ..ProfileName::default() })
        {
            return bad_argument(format!(
                "`{tokenizer}` reproduces another tool: it takes no options and no files"
            ));
        }
        if tokenizer == Tokenizer::Exact
            && *self != (ProfileName { tokenizer, hash: self.hash, ..ProfileName::default() })
        {
            return bad_argument("`exact` compares the whole text: its only option is `hash`");
        }
        let keywords_only = [
            (self.is_search_mode, "search"),
            (self.dictionary.is_some(), "dictionary"),
            (self.stop_words.is_some(), "stop-words"),
        ];
        if let Some((_, option)) = keywords_only.iter().find(|(set, _)| *set && !self.uses_keywords()) {
            return bad_argument(format!(
                "`{option}` needs keywords (`auto` or `jieba-N`), which `{tokenizer}` does not use"
            ));
        }
        if self.is_segmented && !tokenizer.uses_words() {
            return bad_argument(format!(
                "`segmented` needs `words-N`, `by-script`, `auto` or `jieba-N`: `{tokenizer}` does not split texts into words"
            ));
        }
        if matches!(tokenizer, Tokenizer::Code(_)) && cleaning != Cleaning::default() {
            return bad_argument(format!(
                "`{tokenizer}` does not clean source code or change case: leave out these options"
            ));
        }
        if tokenizer == Tokenizer::Features {
            if cleaning != Cleaning::default() {
                return bad_argument("`features` takes no cleaning options");
            }
            if self.idf.is_some() || weights == Weighting::Idf {
                return bad_argument("`features` has its own weights: it uses no IDF table");
            }
        }
        if cleaning.only_han && (cleaning.keep_case || cleaning.strip_digits) {
            return bad_argument(
                "`only-han` drops all letters with case and all digits: leave out `keep-case` and `strip-digits`",
            );
        }
        if weights == Weighting::Idf && self.idf.is_none() {
            return bad_argument("`weights=idf` needs an IDF table: give the file with option `idf`");
        }
        // `auto` uses the table for texts that are not Chinese only with an explicit option `weights`.
        let uses_table = match weights {
            Weighting::ByTokenizer => matches!(tokenizer, Tokenizer::Jieba(_)),
            Weighting::Idf | Weighting::Levels => true,
            Weighting::Uniform => self.uses_keywords(),
        };
        if self.idf.is_some() && !uses_table {
            return bad_argument(format!(
                "`{tokenizer}` uses an IDF table only with `weights=idf` or `weights=levels`"
            ));
        }
        Ok(())
    }
}

impl FromStr for ProfileName {
    type Err = Error;

    /// Parses a name. Does not check whether its options fit together, or whether the files that it mentions are available.
    fn from_str(text: &str) -> Result<Self> {
        let whole = ALIASES.iter().find(|(alias, _)| *alias == text);
        let mut parts = whole.map_or(text, |(_, whole)| whole).split(',');
        let tokenizer = parts.next().unwrap_or_default().parse()?;
        let mut name = ProfileName { tokenizer, ..ProfileName::default() };
        let mut seen = Vec::new();
        let mut markup = None;
        for option in parts {
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (option, None),
            };
            match (key, value) {
                ("search", None) => name.is_search_mode = true,
                ("segmented", None) => name.is_segmented = true,
                ("dictionary", Some(value)) => name.dictionary = Some(parse_checksum(option, value)?),
                ("stop-words", Some(value)) => name.stop_words = Some(parse_checksum(option, value)?),
                ("idf", Some(value)) => name.idf = Some(parse_checksum(option, value)?),
                ("keep-front-matter", None) => name.cleaning.keep_front_matter = true,
                ("no-nfkc", None) => name.cleaning.no_nfkc = true,
                ("keep-case", None) => name.cleaning.keep_case = true,
                ("simplified", None) => name.cleaning.simplified = true,
                ("only-han", None) => name.cleaning.only_han = true,
                ("strip-digits", None) => name.cleaning.strip_digits = true,
                ("weights", Some(value)) => name.weights = tokenizer.parse_weights(value)?,
                ("hash", Some(value)) => name.hash = value.parse()?,
                (key, None) if MARKUP_OPTIONS.iter().any(|(option, _)| *option == key) => {
                    if let Some(other) = markup.filter(|other| *other != key) {
                        return bad_argument(format!(
                            "`{other}` and `{key}` exclude each other in a text profile"
                        ));
                    }
                    markup = Some(key);
                }
                _ => {
                    if let Some((old, new)) = REPLACED_OPTIONS.iter().find(|(old, _)| *old == option) {
                        return bad_argument(format!(
                            "text profile with `{old}`: this option of an earlier version dropped words; use `{new}`, and create the \
                             fingerprints or the store again"
                        ));
                    }
                    return bad_argument(format!(
                        "unknown part `{}`{} of a text profile: expected {OPTION_LIST}",
                        excerpt(option).escape_debug(),
                        did_you_mean(
                            key,
                            backquoted(OPTION_LIST).filter_map(|option| option.split('=').next())
                        )
                    ));
                }
            }
            if seen.contains(&key) {
                return bad_argument(format!("`{key}` is given twice in a text profile"));
            }
            seen.push(key);
        }
        if let Some((_, kind)) = MARKUP_OPTIONS.iter().find(|(option, _)| Some(*option) == markup) {
            name.cleaning.markup = *kind;
        }
        Ok(name)
    }
}

/// Returns the parts of a text that are enclosed in backquotes.
fn backquoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the names of all tokenizers, from which one is suggested for the unknown `name`. If `name` ends in a number, this number
/// replaces the number in the returned names: for `word-5`, `words-1` becomes `words-5`.
fn tokenizer_names_like(name: &str) -> Vec<String> {
    let number = &name[name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..];
    let like = |known: &str| match known.rsplit_once('-') {
        Some((kind, digits)) if !number.is_empty() && digits.parse::<u32>().is_ok() => {
            format!("{kind}-{number}")
        }
        _ => known.to_owned(),
    };
    backquoted(TOKENIZER_LIST).map(like).chain(["jieba", "code"].map(str::to_owned)).collect()
}

fn parse_checksum(option: &str, value: &str) -> Result<Checksum> {
    Checksum::parse(value).map_or_else(
        || {
            bad_argument(format!(
                "`{}`: a checksum has 16 hexadecimal digits in lower case",
                excerpt(option).escape_debug()
            ))
        },
        Ok,
    )
}

impl Tokenizer {
    fn parse_weights(self, value: &str) -> Result<Weighting> {
        let takes_keywords = matches!(self, Tokenizer::Auto | Tokenizer::Jieba(_));
        match value {
            "tf" if takes_keywords => bad_argument(
                "keywords are chosen by TF-IDF: their weights are `idf`, `levels` or `none`, not `tf`",
            ),
            "tf" => Ok(Weighting::ByTokenizer),
            // Keywords are weighted by IDF by default.
            "idf" if matches!(self, Tokenizer::Jieba(_)) => Ok(Weighting::ByTokenizer),
            "idf" => Ok(Weighting::Idf),
            "levels" => Ok(Weighting::Levels),
            "none" => Ok(Weighting::Uniform),
            _ => bad_argument(format!(
                "unknown weights `{}`{} of a text profile: expected `tf`, `idf`, `levels` or `none`",
                excerpt(value).escape_debug(),
                did_you_mean(value, ["tf", "idf", "levels", "none"])
            )),
        }
    }
}

impl FromStr for Tokenizer {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        if let Ok(preset) = name.parse::<Preset>() {
            return Ok(Tokenizer::Preset(preset));
        }
        if name == BY_SCRIPT {
            return Ok(Tokenizer::ByScript);
        }
        let number = |digits: &str, max: usize| {
            let canonical = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
            digits.parse().ok().filter(|n| canonical && (1..=max).contains(n))
        };
        let tokenizer = match name.split_once('-') {
            None => match name {
                "auto" => Some(Tokenizer::Auto),
                "jieba" => Some(Tokenizer::Jieba(DEFAULT_KEYWORD_COUNT)),
                "code" => Some(Tokenizer::Code(DEFAULT_CODE_WORDS)),
                "phrases" => Some(Tokenizer::Phrases),
                "tokens" => Some(Tokenizer::Tokens),
                "features" => Some(Tokenizer::Features),
                "exact" => Some(Tokenizer::Exact),
                _ => None,
            },
            Some(("words", n)) => number(n, 8).map(Tokenizer::Words),
            Some(("code", n)) => number(n, 8).map(Tokenizer::Code),
            Some(("chars", n)) => number(n, 16).map(Tokenizer::Chars),
            Some(("jieba", n)) => number(n, 1000).map(Tokenizer::Jieba),
            Some(("sentences", n)) => number(n, 100).map(Tokenizer::Sentences),
            _ => None,
        };
        tokenizer.map_or_else(
            || {
                let meant = did_you_mean(name, tokenizer_names_like(name));
                bad_argument(format!(
                    "unknown text profile `{}`{meant}: expected {TOKENIZER_LIST}",
                    excerpt(name).escape_debug()
                ))
            },
            Ok,
        )
    }
}

impl fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tokenizer::Auto => write!(f, "auto"),
            Tokenizer::ByScript => f.write_str(BY_SCRIPT),
            Tokenizer::Words(n) => write!(f, "words-{n}"),
            Tokenizer::Code(n) => write!(f, "code-{n}"),
            Tokenizer::Chars(n) => write!(f, "chars-{n}"),
            Tokenizer::Jieba(count) => write!(f, "jieba-{count}"),
            Tokenizer::Phrases => write!(f, "phrases"),
            Tokenizer::Sentences(count) => write!(f, "sentences-{count}"),
            Tokenizer::Tokens => write!(f, "tokens"),
            Tokenizer::Features => write!(f, "features"),
            Tokenizer::Exact => write!(f, "exact"),
            Tokenizer::Preset(preset) => preset.fmt(f),
        }
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cleaning { keep_front_matter, markup, no_nfkc, keep_case, simplified, only_han, strip_digits } =
            self.cleaning;
        write!(f, "{}", self.tokenizer)?;
        if self.is_search_mode {
            write!(f, ",search")?;
        }
        if self.is_segmented {
            write!(f, ",segmented")?;
        }
        let files = [("dictionary", self.dictionary), ("stop-words", self.stop_words), ("idf", self.idf)];
        for (key, checksum) in files {
            if let Some(checksum) = checksum {
                write!(f, ",{key}={checksum}")?;
            }
        }
        let flags = [
            (keep_front_matter, "keep-front-matter"),
            (markup == Markup::PlainText, "plain-text"),
            (markup == Markup::HtmlText, "html-text"),
            (markup == Markup::MainText, "main-text"),
            (no_nfkc, "no-nfkc"),
            (keep_case, "keep-case"),
            (simplified, "simplified"),
            (only_han, "only-han"),
            (strip_digits, "strip-digits"),
        ];
        for (_, flag) in flags.iter().filter(|(set, _)| *set) {
            write!(f, ",{flag}")?;
        }
        match self.weights {
            Weighting::ByTokenizer => {}
            Weighting::Idf => write!(f, ",weights=idf")?,
            Weighting::Levels => write!(f, ",weights=levels")?,
            Weighting::Uniform => write!(f, ",weights=none")?,
        }
        if self.hash != FeatureHash::default() {
            write!(f, ",hash={}", self.hash)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resources() -> Resources {
        let file = |name: &str| Some(Resource::new(name, format!("{name} 1")));
        Resources { dictionary: file("d"), stop_words: file("s"), idf: file("i") }
    }

    fn refused(name: &str, resources: &Resources) -> String {
        match ProfileName::parse(name, resources) {
            Err(Error::BadArgument(reason)) => reason,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn names_round_trip() {
        for name in [
            "auto",
            "by-script",
            "by-script,plain-text,simplified",
            "words-1",
            "words-8",
            "words-3,segmented,plain-text,simplified,weights=none",
            "auto,search,segmented",
            "code-1",
            "code-8,weights=none",
            "chars-16",
            "jieba-50",
            "jieba-1000,search",
            "phrases,weights=none",
            "sentences-100",
            "tokens,no-nfkc,keep-case",
            "features,weights=levels",
            "exact",
            "pypi-simhash",
            "string-hash-128",
            "tokens,weights=none,hash=one-at-a-time",
            "auto,keep-front-matter",
            "words-3,keep-front-matter,plain-text",
            "chars-4,plain-text",
            "words-3,main-text,weights=none",
            "auto,search,html-text,simplified,only-han,weights=levels",
            "words-2,no-nfkc,keep-case,simplified,strip-digits",
        ] {
            assert_eq!(name.parse::<ProfileName>().unwrap().to_string(), name);
            ProfileName::parse(name, &Resources::default()).unwrap();
        }
        for (name, canonical) in [
            ("jieba", "jieba-50"),
            ("code", "code-7"),
            ("main-text", "words-3,segmented,main-text,simplified,weights=none"),
            ("code,weights=none", "code-7,weights=none"),
            ("jieba-5,weights=idf", "jieba-5"),
            ("words-2,weights=tf,hash=xxh3", "words-2"),
            ("auto,plain-text,keep-front-matter", "auto,keep-front-matter,plain-text"),
            ("words-3,hash=xxh3,weights=none,main-text", "words-3,main-text,weights=none"),
        ] {
            assert_eq!(name.parse::<ProfileName>().unwrap().to_string(), canonical);
        }
    }

    #[test]
    fn invalid_names_get_a_list_of_the_valid_parts() {
        for name in [
            "",
            "Auto",
            "words",
            "words-",
            "words-0",
            "words-9",
            "words-+2",
            "words-02",
            "code-0",
            "code-9",
            "chars-17",
            "jieba-0",
            "jieba-1001",
            "jieba-99999999999999999999",
            "auto-2",
            "by-script-2",
            "by",
            "sentences",
            "sentences-101",
            "phrases-2",
            "tokens-1",
        ] {
            assert!(refused(name, &Resources::default()).ends_with(TOKENIZER_LIST), "{name}");
        }
        for name in ["auto,", "auto, plain-text", "auto,x", "auto,search=1", "auto,idf", "auto,weights"] {
            assert!(refused(name, &Resources::default()).ends_with(OPTION_LIST), "{name}");
        }
        for (name, reason) in [
            ("words-2,weights=all", "`tf`, `idf`, `levels` or `none`"),
            ("words-2,hash=x", "unknown feature hash `x`"),
            ("auto,dictionary=9F86d081884c7d65", "16 hexadecimal digits"),
            ("auto,idf=1", "16 hexadecimal digits"),
            ("auto,weights=none,weights=levels", "`weights` is given twice in a text profile"),
            ("auto,search,search", "given twice"),
        ] {
            assert!(refused(name, &Resources::default()).contains(reason), "{name}");
        }
    }

    #[test]
    fn impossible_names_are_refused_with_a_reason() {
        for (name, reason) in [
            ("pypi-simhash,plain-text", "takes no options"),
            ("string-hash-64,hash=md5", "takes no options"),
            ("practice-report,weights=none", "takes no options"),
            ("words-2,plain-text,main-text", "`plain-text` and `main-text` exclude each other"),
            ("words-2,html-text,plain-text", "exclude each other"),
            ("words-2,plain-text,plain-text", "given twice"),
            ("words-3,strip-markup", "use `plain-text`, and create"),
            ("words-3,strip-html,main-text", "use `html-text`, and create"),
            ("words-2,search", "which `words-2` does not use"),
            ("by-script,search", "which `by-script` does not use"),
            ("chars-2,dictionary=0000000000000000", "which `chars-2` does not use"),
            ("features,stop-words=0000000000000000", "needs keywords"),
            ("chars-3,segmented", "`chars-3` does not split texts into words"),
            ("main-text,simplified", "unknown text profile `main-text`"),
            ("code,segmented", "does not split texts into words"),
            ("code,plain-text", "does not clean source code"),
            ("code-3,keep-case", "or change case"),
            ("code,weights=idf", "give the file with option `idf`"),
            ("features,keep-case", "takes no cleaning options"),
            ("exact,keep-case", "its only option is `hash`"),
            ("exact,weights=none", "its only option is `hash`"),
            ("exact,segmented", "its only option is `hash`"),
            ("features,weights=idf", "has its own weights"),
            ("words-2,only-han,keep-case", "leave out"),
            ("words-2,only-han,strip-digits", "leave out"),
            ("words-2,weights=idf", "give the file with option `idf`"),
            ("auto,weights=idf", "give the file with option `idf`"),
            ("auto,weights=tf", "not `tf`"),
            ("jieba,weights=tf", "not `tf`"),
            ("words-2,idf=0000000000000000", "only with `weights=idf`"),
            ("words-2,weights=none,idf=0000000000000000", "only with `weights=idf`"),
            ("auto,idf=0000000000000000", "only with `weights=idf`"),
        ] {
            assert!(refused(name, &Resources::default()).contains(reason), "{name}");
        }
        assert!(refused("words-2", &resources()).contains("needs keywords"));
    }

    #[test]
    fn files_are_named_by_their_checksums() {
        let all = ProfileName::parse("jieba-20,search", &resources()).unwrap();
        let text = all.to_string();
        let checksums = [resources().dictionary, resources().stop_words, resources().idf]
            .map(|file| file.unwrap().checksum().to_string());
        let [dictionary, stop_words, idf] = &checksums;
        assert_eq!(
            text,
            format!("jieba-20,search,dictionary={dictionary},stop-words={stop_words},idf={idf}")
        );
        assert_eq!(text.parse::<ProfileName>().unwrap(), all);
        assert_eq!(ProfileName::parse(&text, &resources()).unwrap(), all);

        let some = Resources { idf: None, ..resources() };
        let reason = refused(&text, &some);
        assert!(reason.contains("give the file with option `idf`") && reason.contains(idf), "{reason}");
        let other = Resources { dictionary: Some(Resource::new("other.txt", "other")), ..resources() };
        let reason = refused(&text, &other);
        let found = other.dictionary.unwrap().checksum().to_string();
        assert!(
            reason.contains(dictionary) && reason.contains(&found) && reason.contains("other.txt"),
            "{reason}"
        );
        let idf_only = Resources { dictionary: None, stop_words: None, ..resources() };
        let name = ProfileName::parse("words-2,weights=idf", &idf_only).unwrap();
        assert_eq!(name.to_string(), format!("words-2,idf={idf},weights=idf"));
    }

    proptest! {
        /// The canonical form of a valid name parses to the same profile.
        #[test]
        fn canonical_names_say_the_same(
            tokenizer in prop::sample::select(vec!["auto", "by-script", "words-3", "jieba", "jieba-7", "phrases", "features", "chars-2", "x"]),
            options in prop::collection::vec(prop::sample::select(OPTION_LIST.split('`').filter(|s| !s.starts_with([',', ' '])).collect::<Vec<_>>()), 0..5),
            weights in prop::sample::select(vec!["tf", "idf", "levels", "none"]),
            checksum in "[0-9a-f]{16}",
        ) {
            let name = [&[tokenizer][..], &options[..]].concat().join(",");
            let name = name.replace("CHECKSUM", &checksum).replace("WEIGHTS", weights).replace("HASH", "xxh3");
            if let Ok(parsed) = name.parse::<ProfileName>() {
                let canonical = parsed.to_string();
                prop_assert_eq!(canonical.parse::<ProfileName>().unwrap(), parsed);
                prop_assert_eq!(canonical.parse::<ProfileName>().unwrap().to_string(), canonical);
            }
        }

        #[test]
        fn nothing_panics(name in "((auto|words-|jieba-|[0-9]|,|=|idf|weights|none|\\PC)){0,12}") {
            let _ = ProfileName::parse(&name, &resources());
        }
    }
}
