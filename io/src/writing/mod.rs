//! Writes documents exactly as they are in their files.

mod cluster_annotation;
mod document_writer;
#[cfg(feature = "parquet")]
pub(crate) mod parquet_rows;

pub use crate::writing::cluster_annotation::ClusterAnnotation;
pub use crate::writing::document_writer::DocumentWriter;
