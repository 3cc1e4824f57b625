//! Code that several tests share. The tests of packages that depend on this one use these files too.

pub(crate) mod compression;
pub(crate) mod folder;
pub(crate) mod gzip;
#[path = "../../../tests/support/random.rs"]
mod random;
pub(crate) mod reading;

pub(crate) use self::random::Random;
