//! Writing documents as they stood in their files.

mod annotation;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod writer;

pub use crate::writing::annotation::Annotation;
pub use crate::writing::writer::DocumentWriter;
