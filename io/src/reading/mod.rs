//! Which files are read, and the documents as they stand there.

mod field_names;
mod file;
pub(crate) mod files;
pub(crate) mod in_memory;
pub(crate) mod record;
pub(crate) mod records;
pub mod sections;

pub use self::files::named::{Named, has_file};
pub use self::files::{FilesById, matches_of, pattern_base};
pub use self::in_memory::GivenDocuments;
