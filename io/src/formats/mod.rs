//! One format of documents a file, and which one a file has.

pub(crate) mod archive;
pub mod binary;
pub(crate) mod csv;
pub mod detect;
pub(crate) mod fields;
mod http;
pub(crate) mod json;
pub(crate) mod objects;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod warc;

pub use self::detect::Format;
pub use self::fields::{Parsed, listed, with_short_quote};
