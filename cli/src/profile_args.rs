//! Options that select the text profile. The selection must agree with the profile that a store records.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use simstore::{Fingerprint, Snapshot};
use simstore_dedup::resolve_profile;
use simstore_text::{Preset, Profile, Resource, Resources};

use crate::command_error::{CommandError, CommandResult, options_as_flags};

/// Options that select the text profile, and the files that it needs.
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

/// Options for files that some profiles need, such as an IDF table.
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
    /// Returns the profile that the options select, or the default profile. `stored` is the name of the profile that a store
    /// records. If `stored` is neither `None` nor empty, it is the default, and selecting another profile is an error.
    pub(crate) fn profile(&self, stored: Option<&str>) -> CommandResult<Profile> {
        resolve_profile(self.name(), &self.resources.read()?, stored).map_err(CommandError::usage)
    }

    /// Returns the profile for documents of an existing store: the profile that the store records. If the store records none,
    /// the user must select a profile, because with a wrong default, queries would miss documents.
    pub(crate) fn profile_for_store<F: Fingerprint>(&self, store: &Snapshot<F>) -> CommandResult<Profile> {
        if store.profile().is_empty() && !self.is_requested() {
            return Err(CommandError::Usage(format!(
                "{}: the store has no text profile: give --profile NAME",
                store.path().display()
            )));
        }
        self.profile(Some(store.profile()))
    }

    /// Returns the name of the profile that the options select (`None` if no option names a profile), and the contents of the
    /// files that profiles need.
    pub(crate) fn name_and_resources(&self) -> CommandResult<(Option<String>, Resources)> {
        Ok((self.name().map(str::to_owned), self.resources.read()?))
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref().or(self.preset.map(Preset::name))
    }

    /// Whether the user has given at least one of the options in [`ProfileArgs`].
    pub(crate) fn is_requested(&self) -> bool {
        let ResourceArgs { dictionary, idf, stop_words } = &self.resources;
        self.name().is_some() || [dictionary, idf, stop_words].iter().any(|file| file.is_some())
    }

    /// Returns the profile that the options select; `None` if no option is given.
    pub(crate) fn requested_profile(&self) -> CommandResult<Option<Profile>> {
        if self.is_requested() { self.profile(None).map(Some) } else { Ok(None) }
    }
}

fn preset_parser() -> impl TypedValueParser<Value = Preset> {
    let presets = Preset::ALL.map(|preset| PossibleValue::new(preset.name()).help(preset.description()));
    PossibleValuesParser::new(presets).try_map(|name| name.parse())
}

/// Returns a usage error if the profile cannot make fingerprints of width `F`.
pub(crate) fn check_bits<F: Fingerprint>(profile: &Profile) -> CommandResult {
    profile.check_bits(F::BITS).map_err(|error| CommandError::Usage(options_as_flags(&error.to_string())))
}

impl ResourceArgs {
    pub(crate) fn read(&self) -> CommandResult<Resources> {
        let read = |path: &Option<PathBuf>| path.as_ref().map(Resource::read).transpose();
        Ok(Resources {
            dictionary: read(&self.dictionary)?,
            idf: read(&self.idf)?,
            stop_words: read(&self.stop_words)?,
        })
    }
}
