//! Bytes: where they come from, unpacked and in UTF-8, and how many at once.

pub(crate) mod compression;
pub(crate) mod compressor;
pub mod encoding;
pub(crate) mod input;
pub(crate) mod limit;
pub(crate) mod open_errors;
pub(crate) mod pipes;
pub(crate) mod section;
pub(crate) mod transcode;

pub use self::input::Input;
pub use self::limit::{Longest, MORE_MEMORY};
pub use self::open_errors::{cannot_open, is_folder};
pub use self::pipes::{Pipes, is_read_once, is_stdin};
pub use self::section::Section;
#[doc(hidden)]
pub use self::section::borders;
