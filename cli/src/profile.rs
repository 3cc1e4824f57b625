//! How texts become fingerprints: by the options of a command, or as in a store.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use simstore::{Fingerprint, Snapshot};
use simstore_dedup::profile_with;
use simstore_text::{Preset, Profile, Resource, Resources};

use crate::failure::{Failure, Outcome, with_flags};

/// Which profile texts have, and the files that its name refers to.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// Profile that makes the fingerprints; see `simstore profiles` [default: by-script,plain-text,simplified, or the store's
    /// profile]
    ///
    /// A profile says how a text becomes a fingerprint: a tokenizer and options, such as chars-4,html-text,weights=none.
    #[arg(long = "profile", value_name = "NAME")]
    name: Option<String>,
    /// Reproduce the fingerprints of another tool; same as --profile with the preset's name
    #[arg(long, conflicts_with = "name", value_name = "NAME", value_parser = preset_parser())]
    preset: Option<Preset>,
    #[command(flatten)]
    resources: ResourceArgs,
}

/// The files that the names of profiles refer to.
#[derive(Debug, Args)]
pub(crate) struct ResourceArgs {
    /// Extra words for Chinese word segmentation (jieba), one a line; an optional frequency follows a space
    #[arg(long, value_name = "FILE")]
    dictionary: Option<PathBuf>,
    /// IDF table, as `simstore idf` prints it, for profiles with weights=idf or keywords
    #[arg(long, value_name = "FILE")]
    idf: Option<PathBuf>,
    /// Stop words, which are never keywords, one a line
    #[arg(long, value_name = "FILE")]
    stop_words: Option<PathBuf>,
}

impl ProfileArgs {
    /// Returns the profile of the options, or the default. If a store has the profile `stored`, it is the default, and another one is
    /// an error. A store of fingerprints has an empty profile and accepts any.
    pub(crate) fn profile(&self, stored: Option<&str>) -> Outcome<Profile> {
        profile_with(self.name(), &self.resources.read()?, stored).map_err(Failure::usage)
    }

    /// Returns the profile for documents of an existing store. If the store has none, an option must name it: another profile makes
    /// other fingerprints, and queries would miss documents.
    pub(crate) fn of_store<F: Fingerprint>(&self, store: &Snapshot<F>) -> Outcome<Profile> {
        if store.profile().is_empty() && !self.is_given() {
            return Err(Failure::Usage(format!(
                "{}: the store has no text profile: give --profile NAME",
                store.path().display()
            )));
        }
        self.profile(Some(store.profile()))
    }

    /// The profile's name, if an option gives one, and the files that it refers to.
    pub(crate) fn choice(&self) -> Outcome<(Option<String>, Resources)> {
        Ok((self.name().map(str::to_owned), self.resources.read()?))
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref().or(self.preset.map(Preset::name))
    }

    /// Whether an option says anything of the profile.
    pub(crate) fn is_given(&self) -> bool {
        let ResourceArgs { dictionary, idf, stop_words } = &self.resources;
        self.name().is_some() || [dictionary, idf, stop_words].iter().any(|file| file.is_some())
    }

    /// The profile that is asked for; none where no option says any.
    pub(crate) fn given(&self) -> Outcome<Option<Profile>> {
        if self.is_given() { self.profile(None).map(Some) } else { Ok(None) }
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
        let read = |path: &Option<PathBuf>| path.as_ref().map(Resource::read).transpose();
        Ok(Resources {
            dictionary: read(&self.dictionary)?,
            idf: read(&self.idf)?,
            stop_words: read(&self.stop_words)?,
        })
    }
}
