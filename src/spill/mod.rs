//! What is too much for the memory, on disk: temporary files, which are counted, and removed when they are dropped; and sorting
//! with them.
//!
//! ```
//! use std::sync::Arc;
//! use simstore::fs::{Disk, Fs};
//! use simstore::spill::{Folder, Place, Sorter};
//!
//! # let folder = tempfile::tempdir()?;
//! let fs: Arc<dyn Fs> = Arc::new(Disk::default());
//! let place = Folder::new(&fs, &folder.path().join("numbers"));
//! let mut sorter = Sorter::new(place.clone(), 1 << 16);
//! for number in (0..100_000_u32).rev() {
//!     sorter.push((number, u64::from(number) * 2))?;
//! }
//! assert_eq!(sorter.finish()?.next().transpose()?, Some((0, 0)));
//! assert!(place.counts().written() > 1_000_000 && place.counts().held() == 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod file;
mod fixed;
mod place;
mod sorter;

pub use self::file::{SpillFile, SpillReader, SpillWriter};
pub use self::fixed::Fixed;
pub use self::place::{Counts, Folder, Place};
pub(crate) use self::sorter::Runs;
pub use self::sorter::{Merge, Sortable, Sorted, Sorter};
