//! Temporary files for data that does not fit in memory, and external sorting. A temporary file is removed when its
//! [`SpillFile`] is dropped. Counters tell how many bytes were written, read, and are on disk.
//!
//! ```
//! use std::sync::Arc;
//! use simstore::fs::{Disk, Fs};
//! use simstore::spill::{PrefixLocation, SpillLocation, Sorter};
//!
//! # let folder = tempfile::tempdir()?;
//! let fs: Arc<dyn Fs> = Arc::new(Disk::default());
//! let location = PrefixLocation::new(&fs, &folder.path().join("numbers"));
//! let mut sorter = Sorter::new(location.clone(), 1 << 16);
//! for number in (0..100_000_u32).rev() {
//!     sorter.push((number, u64::from(number) * 2))?;
//! }
//! assert_eq!(sorter.finish()?.next().transpose()?, Some((0, 0)));
//! assert!(location.counters().written() > 1_000_000 && location.counters().on_disk() == 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod file;
mod fixed_size;
mod location;
mod sorter;

pub use self::file::{SpillFile, SpillReader, SpillWriter};
pub use self::fixed_size::FixedSize;
pub use self::location::{PrefixLocation, SpillCounters, SpillLocation};
pub(crate) use self::sorter::SortedRuns;
pub use self::sorter::{Merge, Sortable, SortedRecords, Sorter};
