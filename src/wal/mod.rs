//! The write-ahead log: operations that are durable before they are in a segment (`format-spec/log.md`).

mod damaged_log;
mod operation;
mod reader;
mod syncer;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use damaged_log::{salvage_log, salvage_previous};
pub(crate) use operation::{Operation, Payload};
pub(crate) use reader::{
    LogHeader, LogPosition, PreviousLog, continue_log, count_inserts, is_unchanged, read_log, read_log_header,
};
pub(crate) use syncer::LogSyncer;
pub(crate) use writer::LogWriter;

use crate::format::log_record;

/// Checksum of a record. It covers the number of the log, the byte offset of the record, and the record's bytes after
/// the checksum. So a record copied from another log or offset is not sound.
fn record_crc(number: u64, position: u64, record: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&number.to_le_bytes());
    crc.update(&position.to_le_bytes());
    crc.update(record.get(log_record::PAYLOAD_LEN..).unwrap_or_default());
    crc.finalize()
}
