//! Opens and decompresses files, decodes them, and reads them by lines or sections, before their format is parsed.

pub(crate) mod compression;
pub(crate) mod compressor;
pub mod encoding;
pub(crate) mod input;
pub(crate) mod length_limit;
pub(crate) mod open_errors;
pub(crate) mod read_once;
pub(crate) mod section;
pub(crate) mod transcode;

pub use self::input::Input;
pub use self::length_limit::{LengthLimit, MORE_MEMORY_ADVICE};
pub use self::open_errors::{cannot_open, is_folder};
pub use self::read_once::{ReadOnceInputs, is_read_once, is_stdin};
pub use self::section::Section;
#[doc(hidden)]
pub use self::section::section_boundaries;
