//! What is asked for.

use std::path::PathBuf;

use simstore::store::{is_store, stored_bits};
use simstore::{Error, Fingerprint, Result};
use simstore_text::{Profile, Resources};

use super::preference::Keep;
use crate::InputKind;

/// How documents come together in clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterBy {
    /// What a chain of near ones connects: each is near another, not necessarily all.
    #[default]
    Components,
    /// Each is near the one that stands for the cluster.
    Stars,
}

/// What is near what, what is kept, and what is done with it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fingerprints that differ in at most this many bits are near; 3 by default, or what the store was built for.
    pub distance: Option<u32>,
    /// Width of fingerprints in bits, 64 or 128; 64 by default, or that of the store.
    pub bits: Option<u32>,
    /// The name of the [`Profile`] by which texts become fingerprints; the default one, or that of the store.
    pub profile: Option<String>,
    /// The files that the name of the profile refers to.
    pub resources: Resources,
    /// How documents come together in clusters.
    pub cluster_by: ClusterBy,
    /// Which document of a cluster is kept.
    pub keep: Keep,
    /// Documents are alike only if at least this share (0 to 1) of all features of the two is in both. The texts are read a
    /// second time.
    pub verify_text: Option<f64>,
    /// A store: what is near something in it is not kept.
    pub against: Option<PathBuf>,
    /// Whether what is kept is added to that store, which is made if there is none. Store and output files change together.
    pub add: bool,
    /// Whether it is added even if the same run has added its documents before.
    pub again: bool,
    /// A folder for the fingerprints of finished files, and those that are there are taken: a run that was cut off carries on.
    pub resume: Option<PathBuf>,
    /// Whether all pairs are to be [visited](super::Found::visit_pairs): they take memory.
    pub pairs: bool,
    /// The most memory for fingerprints and ids, in bytes.
    pub memory: Option<u64>,
}

impl Options {
    /// The width of the fingerprints, in bits.
    pub(super) fn width(&self) -> Result<u32> {
        let stored = match &self.against {
            Some(store) if is_store(store) => Some(stored_bits(store)?),
            Some(store) if !self.add => {
                return Err(Error::Refused(format!("{}: there is no store", store.display())));
            }
            _ => None,
        };
        match self.bits.or(stored).unwrap_or(u64::BITS) {
            bits @ (64 | 128) => Ok(bits),
            bits => Err(Error::BadArgument(format!("option `bits` is {bits}: expected 64 or 128"))),
        }
    }

    /// Refuses what makes no sense whatever is read.
    pub(super) fn check(&self) -> Result<()> {
        if self.against.is_some() && self.verify_text.is_some() {
            return Err(Error::BadArgument(
                "a store holds fingerprints and no texts, so option `verify_text` cannot tell whether a document is like one \
                 that is stored: take out duplicates among the documents first, with option `verify_text` and option \
                 `output`, and compare what is left with the store"
                    .to_owned(),
            ));
        }
        if self.verify_text.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err(Error::BadArgument("option `verify_text`: expected a number from 0 to 1".to_owned()));
        }
        if (self.add && self.against.is_none()) || (self.again && !self.add) {
            let (option, other) = if self.add { ("add", "against") } else { ("again", "add") };
            return Err(Error::BadArgument(format!("option `{option}` needs option `{other}`")));
        }
        Ok(())
    }

    /// Refuses what does not go with what the inputs hold.
    pub(super) fn check_with(&self, kind: InputKind) -> Result<()> {
        if kind == InputKind::Documents {
            return Ok(());
        }
        let of_documents = [
            (self.verify_text.is_some(), "option `verify_text`"),
            (self.resume.is_some(), "option `resume`"),
            (
                self.keep == Keep::Longest || self.keep.field().is_some(),
                "option `keep` by what is in documents",
            ),
        ];
        match of_documents.iter().find(|(is_set, _)| *is_set) {
            Some((_, option)) => Err(for_documents(option)),
            None => Ok(()),
        }
    }

    /// The profile of texts that are compared with those of a store, if there is one. A store of fingerprints, whose profile
    /// is empty, leaves the choice.
    pub(super) fn profile_with(&self, stored: Option<&str>) -> Result<Profile> {
        profile_with(self.profile.as_deref(), &self.resources, stored)
    }
}

/// The profile of this name, or that of a store, or the default one; it has to be that of the store, if there is one.
///
/// # Errors
/// [`Error::BadArgument`] if there is no such profile, [`Error::Refused`] if the store has another one.
pub fn profile_with(name: Option<&str>, resources: &Resources, stored: Option<&str>) -> Result<Profile> {
    let stored = stored.filter(|stored| !stored.is_empty());
    let wanted = name.or(stored).map_or_else(|| Profile::default().to_string(), str::to_owned);
    let profile = Profile::with_resources(&wanted, resources).map_err(|error| match error {
        // What a store says is no bad argument.
        Error::BadArgument(reason) if name.is_none() && stored.is_some() => {
            Error::Refused(format!("profile of the store: {reason}"))
        }
        error => error,
    })?;
    match stored {
        Some(stored) if stored != profile.to_string() => Err(Error::Refused(format!(
            "the store has profile {stored}, not {profile}: its texts and others can only be compared by one; leave out \
             option `profile`, or make another store"
        ))),
        _ => Ok(profile),
    }
}

/// The error of an option that is for documents.
pub(super) fn for_documents(option: &str) -> Error {
    Error::BadArgument(format!("{option} is for documents: the inputs hold fingerprints"))
}

/// Refuses a distance that no plan can be made for.
pub(super) fn check_distance<F: Fingerprint>(distance: u32) -> Result<()> {
    if distance <= F::MAX_DISTANCE {
        return Ok(());
    }
    Err(Error::BadArgument(format!(
        "distance {distance} is too large: at most {} for {}-bit fingerprints",
        F::MAX_DISTANCE,
        F::BITS
    )))
}
