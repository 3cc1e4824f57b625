//! Functions for programs that spread a deduplication over several machines.
//!
//! There are two ways:
//!
//! - **Shards** share the reading. Each machine calls [`make_shard`](shard::make_shard) with the same inputs
//!   and configuration, and with its own shard number. A shard writes part files (`format-spec/part.md`) to the
//!   folder of [`DedupConfig::resume`](crate::DedupConfig::resume). When all part files are in one folder, a
//!   [`run`](crate::run()) with this folder reads them instead of the inputs. The result is the same as
//!   without shards.
//! - **Tasks** on several machines share the whole search, in a program that moves data between them itself. The
//!   functions of [`SimilarSearch`](similar_search::SimilarSearch),
//!   [`ComponentStars`](similar_search::ComponentStars) and [`SimilarStores`](similar_stores::SimilarStores)
//!   depend only on their arguments. So a task may be repeated, or run twice at once. A program that combines
//!   these functions finds the same duplicates as a run.

pub(crate) mod shard;
pub(crate) mod similar_search;
pub(crate) mod similar_stores;
