//! Which files are read, and the documents as they stand there.

mod field_names;
mod file;
pub(crate) mod files;
pub(crate) mod given;
pub(crate) mod record;
pub(crate) mod records;
pub(crate) mod sections;
