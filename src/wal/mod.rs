//! The write-ahead log: operations that are durable before they are in a segment (`format-spec/log.md`).

mod operation;
mod reader;
mod salvage;
mod syncer;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use operation::{Operation, Payload};
pub(crate) use reader::{
    LogEnd, LogStart, PreviousLog, continue_log, count_inserts, is_as_read, read_log, start_log,
};
pub(crate) use salvage::{salvage_log, salvage_previous};
pub(crate) use syncer::LogSyncer;
pub(crate) use writer::LogWriter;

use crate::format::log_record;

/// The checksum of a record: of its log's number, its position in the file, and its bytes after the checksum. So a
/// record of another log or from another place is not sound.
fn record_crc(number: u64, position: u64, record: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&number.to_le_bytes());
    crc.update(&position.to_le_bytes());
    crc.update(record.get(log_record::PAYLOAD_LEN..).unwrap_or_default());
    crc.finalize()
}
