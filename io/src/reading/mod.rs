//! Finds the input files, and reads their documents unparsed.

pub(crate) mod document_stream;
mod field_names;
pub(crate) mod input_files;
pub(crate) mod record;
mod record_reader;
pub(crate) mod records;
pub mod sections;

pub use self::document_stream::DocumentStream;
pub use self::input_files::path_expander::{PathExpander, contains_file};
pub use self::input_files::{FileSet, expand_glob, glob_base};
