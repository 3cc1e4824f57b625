//! Reads a log up to its end, or up to a record that a crash left incomplete.

use std::path::Path;

use byteorder::{ByteOrder, LittleEndian};

use super::operation::{self, Operation, OperationReader};
use super::record_crc;
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, log_header, log_record};

/// Contents of a log's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogHeader {
    /// Sequence number of the log's first record.
    pub(crate) first_sequence: u64,
    /// Previous log of the store, if any.
    pub(crate) previous: Option<PreviousLog>,
}

/// Number of inserts in a log, from a byte offset up to the first damaged record. Checksums are not verified. Used
/// to size a memtable: the file length alone would give a far too large estimate, since names and notes fill most
/// of some logs.
pub(crate) fn count_inserts<F: Fingerprint>(log: &[u8], from: u64) -> u64 {
    let (mut at, mut inserts) = ((from as usize).max(log_header::LEN), 0);
    while let Some(fields) = log.get(at..).and_then(|rest| rest.get(..log_record::LEN)) {
        let len = record_len(fields);
        if !fields.starts_with(&log_record::MAGIC) || len > (log.len() - at) as u64 {
            break;
        }
        let payload = LittleEndian::read_u32(&fields[log_record::PAYLOAD_LEN..]) as usize;
        inserts += operation::count_inserts::<F>(&log[at + log_record::LEN..][..payload]);
        at += len as usize;
    }
    inserts
}

/// The reference from a log to the previous log of the store: the number of the previous log, and how many of its bytes
/// were durable when the next log was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreviousLog {
    pub(crate) number: u64,
    /// Length of the previous log's header and sound records, in bytes.
    pub(crate) len: u64,
}

/// A position in a log: where one read of the log ended, and where the next read continues when the log has grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPosition {
    pub(crate) header: LogHeader,
    /// Whether the store keeps ids. If not, an operation with an id other than 0, with a name or with a note is an error.
    pub(crate) keeps_ids: bool,
    /// Sequence number that the next record will have.
    pub(crate) next_sequence: u64,
    /// Whether the last record is an end record: the log was closed, after all earlier records were synced.
    pub(crate) closed: bool,
    /// Length of the header and the sound records read so far, in bytes.
    pub(crate) sound_bytes: u64,
    /// Number of bytes after the sound records: a record torn by a crash, or one that is being written.
    pub(crate) torn_bytes: u64,
    /// Byte offset and checksum of the last sound record.
    pub(crate) last: Option<(u64, u32)>,
}

impl LogPosition {
    /// Number of sound records with operations, up to this position.
    pub(crate) fn records(&self) -> u64 {
        self.next_sequence - self.header.first_sequence - u64::from(self.closed)
    }
}

/// A record with a valid checksum.
pub(super) struct LogRecord<'a> {
    pub(super) sequence: u64,
    /// Length of the part of the file that was durable when the record was written, in bytes.
    durable: u64,
    /// The whole encoded record: fields, payload and padding.
    pub(super) bytes: &'a [u8],
    payload: &'a [u8],
}

impl LogRecord<'_> {
    /// Whether this is an end record, which closes a log.
    pub(super) fn is_end(&self) -> bool {
        self.payload.is_empty()
    }
}

/// Reads a log. Calls `visit` with the sequence number of a record and each of its operations. A record is visited
/// either completely or not at all.
///
/// Returns `None` if the header is torn: then the log was never synced and is empty. After an error, the caller must
/// discard the visited operations.
pub(crate) fn read_log<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
    keeps_ids: bool,
    visit: impl FnMut(u64, Operation<'_, F>) -> Result<()>,
) -> Result<Option<LogPosition>> {
    let Some(from) = read_log_header::<F>(path, bytes, number, keeps_ids)? else { return Ok(None) };
    continue_log(path, bytes, number, from, visit).map(Some)
}

/// Reads the header of a log. Returns the position after it, or `None` if the header is torn.
pub(crate) fn read_log_header<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
    keeps_ids: bool,
) -> Result<Option<LogPosition>> {
    let Some(header) = read_header::<F>(path, bytes, number)? else { return Ok(None) };
    let (next_sequence, sound_bytes) = (header.first_sequence, log_header::LEN as u64);
    let torn_bytes = bytes.len() as u64 - sound_bytes;
    Ok(Some(LogPosition {
        header,
        keeps_ids,
        next_sequence,
        closed: false,
        sound_bytes,
        torn_bytes,
        last: None,
    }))
}

/// Whether a log still begins with the part that was read earlier, up to the position `read`. Compares only the header and
/// the last record of this part.
pub(crate) fn is_unchanged<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
    read: &LogPosition,
) -> bool {
    let has_record = |(at, crc): (u64, u32)| {
        let record = record_at(bytes, at as usize, number);
        record.is_ok_and(|record| {
            record.sequence.checked_add(1) == Some(read.next_sequence)
                && at + record.bytes.len() as u64 == read.sound_bytes
                && LittleEndian::read_u32(&record.bytes[log_record::CRC..]) == crc
        })
    };
    read.sound_bytes <= bytes.len() as u64
        && matches!(read_header::<F>(path, bytes, number), Ok(Some(start)) if start == read.header)
        && read.last.is_none_or(has_record)
}

/// Like [`read_log`], but starts at the position `from`, where an earlier call ended.
pub(crate) fn continue_log<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
    from: LogPosition,
    mut visit: impl FnMut(u64, Operation<'_, F>) -> Result<()>,
) -> Result<LogPosition> {
    let mut end = from;
    if from.sound_bytes > bytes.len() as u64 {
        let damage = Damage::Truncated { expected: from.sound_bytes, found: bytes.len() as u64 };
        return Err(Error::corrupt(path, bytes.len() as u64, damage));
    }
    while end.sound_bytes < bytes.len() as u64 && !end.closed {
        let at = end.sound_bytes as usize;
        let record = match record_at(bytes, at, number) {
            Ok(record) if record.sequence == end.next_sequence => record,
            unsound => {
                let damage = unsound.map_or_else(|damage| damage, |record| wrong_sequence(record.sequence));
                refuse_if_synced(path, bytes, number, at, end.next_sequence + 1, damage)?;
                break;
            }
        };
        visit_record(path, at, &record, end.keeps_ids, &mut visit)?;
        end.closed = record.is_end();
        end.last = Some((end.sound_bytes, LittleEndian::read_u32(&record.bytes[log_record::CRC..])));
        end.sound_bytes += record.bytes.len() as u64;
        end.next_sequence += 1;
    }
    end.torn_bytes = bytes.len() as u64 - end.sound_bytes;
    Ok(end)
}

/// Checks and decodes the header of a log. Returns `None` if the header is torn.
pub(super) fn read_header<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
) -> Result<Option<LogHeader>> {
    let version = bytes.get(log_header::VERSION..log_header::BITS).map(LittleEndian::read_u32);
    if let Some(found) = version.filter(|_| bytes.starts_with(&format::LOG_MAGIC)) {
        format::check_version(path, found)?;
    }
    let Some(header) = bytes.get(..log_header::LEN) else { return Ok(None) };
    let (expected, found) =
        (LittleEndian::read_u32(&header[log_header::CRC..]), crc32fast::hash(&header[..log_header::CRC]));
    if header.iter().all(|&byte| byte == 0) || (header.starts_with(&format::LOG_MAGIC) && expected != found) {
        refuse_if_synced(path, bytes, number, 0, 0, Damage::Checksum { part: "header", expected, found })?;
        return Ok(None);
    }
    if !header.starts_with(&format::LOG_MAGIC) {
        let found = header[..log_header::VERSION].try_into().unwrap_or_default();
        return Err(Error::corrupt(path, 0, Damage::Magic { expected: format::LOG_MAGIC, found }));
    }
    let field = |offset: usize, damage, sound: bool| {
        if sound { Ok(()) } else { Err(Error::corrupt(path, offset as u64, damage)) }
    };
    let bits = u32::from(header[log_header::BITS]);
    let damage = Damage::Field { name: "bits", found: u64::from(bits), expected: "64 or 128" };
    field(log_header::BITS, damage, bits == 64 || bits == 128)?;
    if bits != F::BITS {
        return Err(Error::Width { path: path.to_path_buf(), expected: F::BITS, found: bits });
    }
    format::check_reserved(path, log_header::BITS + 1, &header[log_header::BITS + 1..log_header::NUMBER])?;
    let damage = Damage::Mismatch { what: "the number of the log and the name of its file" };
    field(log_header::NUMBER, damage, LittleEndian::read_u64(&header[log_header::NUMBER..]) == number)?;
    let first = LittleEndian::read_u64(&header[log_header::FIRST_SEQUENCE..]);
    let damage = Damage::Field { name: "first sequence", found: first, expected: "at most 2^63" };
    field(log_header::FIRST_SEQUENCE, damage, first <= format::MAX_FIRST_SEQUENCE)?;
    let previous = LittleEndian::read_u64(&header[log_header::PREVIOUS..]);
    let damage =
        Damage::Field { name: "previous", found: previous, expected: "less than the number of this log" };
    field(log_header::PREVIOUS, damage, previous < number)?;
    let len = LittleEndian::read_u64(&header[log_header::PREVIOUS_LEN..]);
    let expected = "a multiple of 8, 56 at least; 0 where there is no previous log";
    let damage = Damage::Field { name: "previous length", found: len, expected };
    let is_len = len.is_multiple_of(log_record::ALIGNMENT as u64) && len >= log_header::LEN as u64;
    field(log_header::PREVIOUS_LEN, damage, if previous == 0 { len == 0 } else { is_len })?;
    format::check_reserved(path, log_header::RESERVED, &header[log_header::RESERVED..log_header::CRC])?;
    let previous = (previous > 0).then_some(PreviousLog { number: previous, len });
    Ok(Some(LogHeader { first_sequence: first, previous }))
}

/// Length of a record with its padding, in bytes. `fields` are its first bytes.
pub(super) fn record_len(fields: &[u8]) -> u64 {
    let payload = u64::from(LittleEndian::read_u32(&fields[log_record::PAYLOAD_LEN..]));
    (log_record::LEN as u64 + payload).next_multiple_of(log_record::ALIGNMENT as u64)
}

/// Decodes the record at a byte offset of the file and verifies its checksum.
pub(super) fn record_at(bytes: &[u8], at: usize, number: u64) -> Result<LogRecord<'_>, Damage> {
    let rest = &bytes[at..];
    let truncated = |expected: u64| Damage::Truncated { expected, found: rest.len() as u64 };
    let fields = rest.get(..log_record::LEN).ok_or(truncated(log_record::LEN as u64))?;
    if !fields.starts_with(&log_record::MAGIC) {
        let found = u64::from(LittleEndian::read_u32(fields));
        return Err(Damage::Field {
            name: "record magic",
            found,
            expected: "1667592951, which starts a record",
        });
    }
    let len = record_len(fields);
    if len > rest.len() as u64 {
        return Err(truncated(len));
    }
    let record = &rest[..len as usize];
    let (expected, found) =
        (LittleEndian::read_u32(&record[log_record::CRC..]), record_crc(number, at as u64, record));
    if expected != found {
        return Err(Damage::Checksum { part: "record", expected, found });
    }
    let payload = LittleEndian::read_u32(&record[log_record::PAYLOAD_LEN..]) as usize;
    Ok(LogRecord {
        sequence: LittleEndian::read_u64(&record[log_record::SEQUENCE..]),
        durable: LittleEndian::read_u64(&record[log_record::DURABLE..]),
        bytes: record,
        payload: &record[log_record::LEN..][..payload],
    })
}

fn wrong_sequence(found: u64) -> Damage {
    Damage::Field { name: "sequence", found, expected: "one more than that of the record before" }
}

/// Returns `damage` as an error if the unsound bytes at offset `at` had been synced. If not, a crash may have left
/// them, and they are no error. The proof of a sync is a later record whose sequence number is at least
/// `min_sequence`, and whose field for the durable length of the log is greater than `at`.
fn refuse_if_synced(
    path: &Path,
    bytes: &[u8],
    number: u64,
    at: usize,
    min_sequence: u64,
    damage: Damage,
) -> Result<()> {
    // A hostile file may have many long records that overlap. The budget bounds the time for their checksums. Running out
    // of it counts as damage, since no crash leaves such a file.
    let mut checksum_budget = 4 * (bytes.len() - at) as u64;
    for later in (at..bytes.len()).step_by(log_record::ALIGNMENT).skip(1) {
        let rest = &bytes[later..];
        let Some(fields) = rest.get(..log_record::LEN) else { break };
        if !fields.starts_with(&log_record::MAGIC) {
            continue;
        }
        let sequence = LittleEndian::read_u64(&fields[log_record::SEQUENCE..]);
        let durable = LittleEndian::read_u64(&fields[log_record::DURABLE..]);
        let len = record_len(fields);
        let fits = len <= rest.len() as u64 && durable <= later as u64;
        if !fits || sequence < min_sequence || durable <= at as u64 {
            continue;
        }
        if len > checksum_budget || record_at(bytes, later, number).is_ok() {
            return Err(Error::corrupt(path, at as u64, damage));
        }
        checksum_budget -= len;
    }
    Ok(())
}

/// Checks all operations of a record, and then visits them. `keeps_ids` is whether the store keeps ids.
pub(super) fn visit_record<F: Fingerprint>(
    path: &Path,
    at: usize,
    record: &LogRecord<'_>,
    keeps_ids: bool,
    visit: &mut impl FnMut(u64, Operation<'_, F>) -> Result<()>,
) -> Result<()> {
    let corrupt = |offset: usize, damage| Err(Error::corrupt(path, (at + offset) as u64, damage));
    let reserved = &record.bytes[log_record::RESERVED..log_record::SEQUENCE];
    format::check_reserved(path, at + log_record::RESERVED, reserved)?;
    let padding = log_record::LEN + record.payload.len();
    format::check_reserved(path, at + padding, &record.bytes[padding..])?;
    if record.durable > at as u64 || (record.is_end() && record.durable < at as u64) {
        let expected = "at most the position of the record; that of an end record";
        let damage = Damage::Field { name: "durable", found: record.durable, expected };
        return corrupt(log_record::DURABLE, damage);
    }
    let mut operations = OperationReader::<F>::new(record.payload, keeps_ids);
    loop {
        match operations.next() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(damage) => return corrupt(log_record::LEN + operations.position(), damage),
        }
    }
    let mut operations = OperationReader::<F>::new(record.payload, keeps_ids);
    while let Ok(Some(operation)) = operations.next() {
        visit(record.sequence, operation)?;
    }
    Ok(())
}
