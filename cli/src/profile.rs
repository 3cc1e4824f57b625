//! How texts become fingerprints: by the options of a command, or as in a store.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use simstore::Fingerprint;
use simstore_corpus::dedup::profile_with;
use simstore_text::{Preset, Profile, Resource, Resources};

use crate::failure::{Failure, Outcome, with_flags};

/// What the name of a profile consists of, for the long help of `--profile`.
const PROFILE_HELP: &str = "\
How a text becomes features: a tokenizer, then options, after commas, as in chars-4,strip-html,weights=none [default: \
auto,strip-markup, or that of the store]

Tokenizers
  auto         as jieba-50 where the text is Chinese, else as words-2
  words-N      every N successive words, N from 1 to 8
  chars-N      every N successive characters, N from 1 to 16
  jieba-N      the N keywords of greatest TF-IDF weight, N from 1 to 1000
  phrases      the words between two punctuation marks or empty lines
  sentences-N  the N longest different sentences, N from 1 to 100
  tokens       what stands between white space
  features     the text is lines FEATURE<TAB>WEIGHT, taken as they are
  or a preset, which does as another tool and takes no options

Options of auto and jieba-N
  search               words inside of long words count too
  dictionary=CHECKSUM  the words of --dictionary; added by itself, as the next two are
  stop-words=CHECKSUM  the words of --stop-words
  idf=CHECKSUM         the table of --idf; for others with weights=idf or weights=levels

Cleaning, in this order
  keep-front-matter  YAML between --- and --- at the start is text; else it is left out
  strip-markup       tags, scripts, styles, targets of links and code fences are left out
  strip-html         the text is read as HTML
  main-text          with strip-html: navigation, side notes, headers and footers are left out
  no-nfkc            the text is not brought to Unicode's form NFKC; else it is
  keep-case          letters keep their case; else they become lower case
  simplified         traditional Chinese characters become simplified ones
  only-han           only Han characters are left
  strip-digits       digits and other numerals are left out

Weights and hash
  weights=tf      a feature weighs 1 each time it comes: the default but for keywords
  weights=idf     its inverse document frequency each time it comes, by the table of --idf
  weights=levels  one of five levels, relative to the heaviest
  weights=none    every different feature weighs 1
  hash=HASH       xxh3 (the default), md5, lookup2, lookup3, one-at-a-time, string-hash, siphash or fnv-1a";

/// Which profile texts have, and the files that its name refers to.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// How a text becomes features: auto, words-N, chars-N, jieba-N, phrases, sentences-N, tokens or features; then
    /// options, after commas, such as strip-markup or weights=none; --help explains all [default: auto,strip-markup, or that of
    /// the store]
    #[arg(long = "profile", value_name = "NAME", long_help = PROFILE_HELP)]
    name: Option<String>,
    /// Make the same fingerprints as another tool; the same as --profile with the preset's name
    #[arg(long, conflicts_with = "name", value_name = "NAME", value_parser = preset_parser())]
    preset: Option<Preset>,
    #[command(flatten)]
    resources: ResourceArgs,
}

/// The files that the names of profiles refer to.
#[derive(Debug, Args)]
pub(crate) struct ResourceArgs {
    /// Words that jieba should know, one a line, with a frequency after a space where it is known
    #[arg(long, value_name = "FILE")]
    dictionary: Option<PathBuf>,
    /// Table of inverse document frequencies, as `simstore idf` prints it
    #[arg(long, value_name = "FILE")]
    idf: Option<PathBuf>,
    /// Words that are no keywords, one a line
    #[arg(long, value_name = "FILE")]
    stop_words: Option<PathBuf>,
}

impl ProfileArgs {
    /// The profile of texts that belong to a store with profile `stored`, if there is one. A store of fingerprints,
    /// whose profile is empty, leaves the choice.
    pub(crate) fn profile(&self, stored: Option<&str>) -> Outcome<Profile> {
        profile_with(self.name(), &self.resources.read()?, stored).map_err(Failure::usage)
    }

    /// The name that is asked for, and the files that it refers to.
    pub(crate) fn choice(&self) -> Outcome<(Option<String>, Resources)> {
        Ok((self.name().map(str::to_owned), self.resources.read()?))
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref().or(self.preset.map(Preset::name))
    }

    /// The profile that is asked for; none where no option says any.
    pub(crate) fn given(&self) -> Outcome<Option<Profile>> {
        let ResourceArgs { dictionary, idf, stop_words } = &self.resources;
        let is_given = [dictionary, idf, stop_words].iter().any(|file| file.is_some());
        if is_given || self.name().is_some() { self.profile(None).map(Some) } else { Ok(None) }
    }
}

fn preset_parser() -> impl TypedValueParser<Value = Preset> {
    let presets = Preset::ALL.map(|preset| PossibleValue::new(preset.name()).help(preset.about()));
    PossibleValuesParser::new(presets).try_map(|name| name.parse())
}

/// Refuses a profile that makes fingerprints of another width.
pub(crate) fn check_bits<F: Fingerprint>(profile: &Profile) -> Outcome {
    profile.check_bits(F::BITS).map_err(|error| Failure::Usage(with_flags(&error.to_string())))
}

impl ResourceArgs {
    pub(crate) fn read(&self) -> Outcome<Resources> {
        let read = |path: &Option<PathBuf>| path.as_deref().map(read_resource).transpose();
        Ok(Resources {
            dictionary: read(&self.dictionary)?,
            idf: read(&self.idf)?,
            stop_words: read(&self.stop_words)?,
        })
    }
}

fn read_resource(path: &Path) -> Outcome<Resource> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Failed(format!("{}: cannot read: {error}", path.display())))?;
    Ok(Resource::new(path, text))
}
