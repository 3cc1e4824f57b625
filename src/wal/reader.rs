//! Reading a log, up to where a crash left it.

use std::path::Path;

use byteorder::{ByteOrder, LittleEndian};

use super::operation::{self, Operation, Operations};
use super::record_crc;
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, log_header, log_record};

/// What the header of a log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogStart {
    /// The version of the format.
    pub(crate) version: u32,
    /// The sequence number of the first record.
    pub(crate) first_sequence: u64,
    /// The log before it.
    pub(crate) previous: Option<PreviousLog>,
}

/// How many inserts the records of a log from a position on hold, without a look at their checksums; those that follow damage
/// are not counted. Names and notes take most of some logs: lengths alone would foretell far too many.
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

/// What a log says of the one before it, all of which was durable when it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreviousLog {
    pub(crate) number: u64,
    /// Bytes of its header and its sound records.
    pub(crate) len: u64,
}

/// Where reading a log ended, and where it can go on when the log has grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    pub(crate) start: LogStart,
    /// The sequence number of the record that would follow the last sound one.
    pub(crate) next_sequence: u64,
    /// Whether the last record says that the log was closed, and that all before it was synced.
    pub(crate) closed: bool,
    /// Bytes of the header and the sound records.
    pub(crate) sound_bytes: u64,
    /// Bytes that follow and are no sound record: a crash cut them off, or they are being written.
    pub(crate) torn_bytes: u64,
    /// Where the last sound record starts, and its checksum.
    pub(crate) last: Option<(u64, u32)>,
}

impl LogEnd {
    /// Sound records with operations.
    pub(crate) fn records(&self) -> u64 {
        self.next_sequence - self.start.first_sequence - u64::from(self.closed)
    }
}

/// A record whose checksum is right.
pub(super) struct Record<'a> {
    pub(super) sequence: u64,
    durable: u64,
    /// Its fields, payload and padding.
    pub(super) bytes: &'a [u8],
    payload: &'a [u8],
}

impl Record<'_> {
    /// Whether it ends a log that was closed.
    pub(super) fn is_end(&self) -> bool {
        self.payload.is_empty()
    }
}

/// Visits the operations of a log, each with the sequence number of its record, and never only some of a record's.
/// `None` if the header is torn: then the log was never synced, and holds nothing. After an error, what was visited
/// must be discarded.
pub(crate) fn read_log<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
    visit: impl FnMut(u64, Operation<'_, F>) -> Result<()>,
) -> Result<Option<LogEnd>> {
    let Some(from) = start_log::<F>(path, bytes, number)? else { return Ok(None) };
    continue_log(path, bytes, number, from, visit).map(Some)
}

/// The end of a log's header; `None` if it is torn.
pub(crate) fn start_log<F: Fingerprint>(path: &Path, bytes: &[u8], number: u64) -> Result<Option<LogEnd>> {
    let Some(start) = read_header::<F>(path, bytes, number)? else { return Ok(None) };
    let (next_sequence, sound_bytes) = (start.first_sequence, log_header::LEN as u64);
    let torn_bytes = bytes.len() as u64 - sound_bytes;
    Ok(Some(LogEnd { start, next_sequence, closed: false, sound_bytes, torn_bytes, last: None }))
}

/// Whether a log still has the header and the last record that were read of it.
pub(crate) fn is_as_read<F: Fingerprint>(path: &Path, bytes: &[u8], number: u64, read: &LogEnd) -> bool {
    let has_record = |(at, crc): (u64, u32)| {
        let record = record_at(bytes, at as usize, number);
        record.is_ok_and(|record| {
            record.sequence + 1 == read.next_sequence
                && at + record.bytes.len() as u64 == read.sound_bytes
                && LittleEndian::read_u32(&record.bytes[log_record::CRC..]) == crc
        })
    };
    read.sound_bytes <= bytes.len() as u64
        && matches!(read_header::<F>(path, bytes, number), Ok(Some(start)) if start == read.start)
        && read.last.is_none_or(has_record)
}

/// Visits what a log holds behind the place where an earlier call ended.
pub(crate) fn continue_log<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
    from: LogEnd,
    mut visit: impl FnMut(u64, Operation<'_, F>) -> Result<()>,
) -> Result<LogEnd> {
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
        visit_record(path, at, &record, end.start.version, &mut visit)?;
        end.closed = record.is_end();
        end.last = Some((end.sound_bytes, LittleEndian::read_u32(&record.bytes[log_record::CRC..])));
        end.sound_bytes += record.bytes.len() as u64;
        end.next_sequence += 1;
    }
    end.torn_bytes = bytes.len() as u64 - end.sound_bytes;
    Ok(end)
}

/// Checks the header; returns what it says, `None` if it is torn.
pub(super) fn read_header<F: Fingerprint>(
    path: &Path,
    bytes: &[u8],
    number: u64,
) -> Result<Option<LogStart>> {
    let version = bytes.get(log_header::VERSION..log_header::BITS).map(LittleEndian::read_u32);
    if let Some(found) = version.filter(|_| bytes.starts_with(&format::LOG_MAGIC)) {
        format::check_version(path, found, format::LOG_VERSIONS)?;
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
    let version = LittleEndian::read_u32(&header[log_header::VERSION..]);
    Ok(Some(LogStart { version, first_sequence: first, previous }))
}

/// The length of a record with its padding, from its fields.
pub(super) fn record_len(fields: &[u8]) -> u64 {
    let payload = u64::from(LittleEndian::read_u32(&fields[log_record::PAYLOAD_LEN..]));
    (log_record::LEN as u64 + payload).next_multiple_of(log_record::ALIGNMENT as u64)
}

/// The record at a position of the file, if its checksum is right.
pub(super) fn record_at(bytes: &[u8], at: usize, number: u64) -> Result<Record<'_>, Damage> {
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
    Ok(Record {
        sequence: LittleEndian::read_u64(&record[log_record::SEQUENCE..]),
        durable: LittleEndian::read_u64(&record[log_record::DURABLE..]),
        bytes: record,
        payload: &record[log_record::LEN..][..payload],
    })
}

fn wrong_sequence(found: u64) -> Damage {
    Damage::Field { name: "sequence", found, expected: "one more than that of the record before" }
}

/// Fails if what is not sound at `at` was synced: a later record, of sequence number `least` or above, says that more
/// than `at` bytes of the file were durable when it was written. Otherwise a crash explains it.
fn refuse_if_synced(
    path: &Path,
    bytes: &[u8],
    number: u64,
    at: usize,
    least: u64,
    damage: Damage,
) -> Result<()> {
    // A hostile file may hold many long records that overlap: a crash does not leave that either.
    let mut may_checksum = 4 * (bytes.len() - at) as u64;
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
        if !fits || sequence < least || durable <= at as u64 {
            continue;
        }
        if len > may_checksum || record_at(bytes, later, number).is_ok() {
            return Err(Error::corrupt(path, at as u64, damage));
        }
        may_checksum -= len;
    }
    Ok(())
}

/// Visits the operations of a record of a log of this version after all of them have been checked.
pub(super) fn visit_record<F: Fingerprint>(
    path: &Path,
    at: usize,
    record: &Record<'_>,
    version: u32,
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
    let mut operations = Operations::<F>::new(record.payload, version);
    loop {
        match operations.next() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(damage) => return corrupt(log_record::LEN + operations.position(), damage),
        }
    }
    let mut operations = Operations::<F>::new(record.payload, version);
    while let Ok(Some(operation)) = operations.next() {
        visit(record.sequence, operation)?;
    }
    Ok(())
}
