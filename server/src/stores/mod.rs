//! The stores that a service can serve: fingerprints of 64 or 128 bits, and similar documents. Each is open for writing, or follows
//! another process that writes.

mod fingerprint_store;
mod fingerprint_writer;
mod id_assigner;
mod name_lookup;
mod open;
mod pair_index;
mod query_trace;
mod segment_age;
mod served_store;
mod similar_store;
mod similar_writer;
mod store_access;
mod store_inspection;
mod store_upkeep;
mod striped_locks;

pub(crate) use self::open::open_store;
pub(crate) use self::served_store::{AdditionOptions, ServedStore};
pub(crate) use self::store_inspection::TablePlace;
