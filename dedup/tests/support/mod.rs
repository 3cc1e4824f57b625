//! Code that several tests need.

#[path = "../../../io/tests/support/folder.rs"]
pub(crate) mod folder;
pub(crate) mod given;
#[path = "../../../io/tests/support/gzip.rs"]
pub(crate) mod gzip;
#[path = "../../../tests/support/random.rs"]
mod random;

pub(crate) use self::random::Random;
