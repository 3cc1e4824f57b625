//! Feature hashes: from a feature to as many bits as a fingerprint has.

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// A hash of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum FeatureHash {
    /// xxh3 of the feature's UTF-8, with seed 0 and of as many bits as the fingerprint.
    #[default]
    Xxh3,
}

impl FeatureHash {
    pub(crate) fn hash<F: Fingerprint>(self, feature: &str) -> F {
        match self {
            FeatureHash::Xxh3 if F::BITS == 64 => F::from_u128(u128::from(xxh3_64(feature.as_bytes()))),
            FeatureHash::Xxh3 => F::from_u128(xxh3_128(feature.as_bytes())),
        }
    }
}

impl fmt::Display for FeatureHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FeatureHash::Xxh3 => "xxh3",
        })
    }
}

impl FromStr for FeatureHash {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "xxh3" => Ok(FeatureHash::Xxh3),
            _ => Err(Error::BadArgument(format!(
                "unknown feature hash `{}`: expected `xxh3`",
                name.escape_debug()
            ))),
        }
    }
}
