//! The formats of documents, one module each, and their detection.

pub(crate) mod archive;
pub mod binary;
pub(crate) mod csv;
pub mod detect;
pub(crate) mod fields;
mod http;
pub(crate) mod json;
pub(crate) mod json_objects;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod warc;

pub use self::detect::Format;
pub use self::fields::{ParsedDocument, format_names, shorten_quote};
