//! Writer of a log.

use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use byteorder::{ByteOrder, LittleEndian};

use super::operation::Payload;
use super::reader::{LogHeader, PreviousLog};
use super::record_crc;
use super::syncer::LogSyncer;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, log_header, log_record};
use crate::fs::{Fs, TEMPORARY_SUFFIX, WriteFile};

/// Maximum capacity of the record buffer that is kept between records, in bytes.
const MAX_KEPT_BUFFER: usize = 1 << 20;

/// Writer of a log.
pub(crate) struct LogWriter<F> {
    path: PathBuf,
    file: Box<dyn WriteFile>,
    number: u64,
    /// Length of the part of the log that the operating system has received, in bytes.
    len: u64,
    next_sequence: u64,
    /// Buffer for an encoded record. A record is written in one call.
    record: Vec<u8>,
    /// Whether no more records can be appended: the log was closed, or a failed write may have left a partial record.
    /// Readers ignore all records after a partial one.
    failed: bool,
    syncer: Arc<LogSyncer>,
    fingerprints: PhantomData<fn(F)>,
}

impl<F: Fingerprint> LogWriter<F> {
    /// Creates a log, replacing an existing one. The file gets its name only after its header is durable, so a crash
    /// leaves no log without a header. The folder is not synced. The part of the previous log that `header` names must
    /// already be durable.
    pub(crate) fn create(
        fs: &Arc<dyn Fs>,
        path: &Path,
        number: u64,
        header: LogHeader,
    ) -> Result<LogWriter<F>> {
        if header.first_sequence > format::MAX_FIRST_SEQUENCE {
            let reason = "sequence numbers are exhausted: `salvage` the store into a new one";
            return Err(Error::Exhausted { path: path.to_path_buf(), reason });
        }
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(TEMPORARY_SUFFIX);
        let temporary = PathBuf::from(temporary);
        let mut file = fs.create(&temporary).map_err(Error::io(&temporary, "create"))?;
        let handle = file.sync_handle().map_err(Error::io(path, "open"))?;
        let encoded = encode_header(F::BITS, number, header);
        file.write_all(&encoded).map_err(Error::io(&temporary, "write"))?;
        file.sync().map_err(Error::io(&temporary, "sync"))?;
        fs.rename(&temporary, path).map_err(Error::io(path, "rename to"))?;
        let len = encoded.len() as u64;
        Ok(LogWriter {
            path: path.to_path_buf(),
            file,
            number,
            len,
            next_sequence: header.first_sequence,
            record: Vec::new(),
            failed: false,
            syncer: Arc::new(LogSyncer::new(path, handle, len)),
            fingerprints: PhantomData,
        })
    }

    /// Hands a record to the operating system in one write call and returns its sequence number. After a file error,
    /// every further call fails, since a reader would ignore a record after a partial one.
    pub(crate) fn append(&mut self, payload: &Payload<F>) -> Result<u64> {
        if payload.is_empty() {
            return Err(Error::Bug("a record of a log without operations".to_string()));
        }
        self.write(payload.bytes())
    }

    /// Closes the log: makes it durable and appends an end record. A log without records gets no end record. No record
    /// can be appended afterwards.
    pub(crate) fn close(&mut self) -> Result<()> {
        if self.len == log_header::LEN as u64 {
            return Ok(());
        }
        self.syncer.sync_to(self.len, Duration::ZERO)?;
        self.write(&[])?;
        self.failed = true;
        Ok(())
    }

    fn write(&mut self, payload: &[u8]) -> Result<u64> {
        if self.failed {
            let source = io::Error::other("an earlier write failed; open the store again");
            return Err(Error::io(&self.path, "write")(source));
        }
        let sequence = self.next_sequence;
        self.encode(sequence, payload);
        if let Err(error) = self.file.write_all(&self.record) {
            self.failed = true;
            return Err(Error::io(&self.path, "write")(error));
        }
        self.len += self.record.len() as u64;
        self.next_sequence += 1;
        self.syncer.set_written(self.len);
        self.record.clear();
        self.record.shrink_to(MAX_KEPT_BUFFER);
        Ok(sequence)
    }

    fn encode(&mut self, sequence: u64, payload: &[u8]) {
        let mut fields = [0; log_record::LEN];
        fields[..log_record::CRC].copy_from_slice(&log_record::MAGIC);
        LittleEndian::write_u32(&mut fields[log_record::PAYLOAD_LEN..], payload.len() as u32);
        LittleEndian::write_u64(&mut fields[log_record::SEQUENCE..], sequence);
        LittleEndian::write_u64(&mut fields[log_record::DURABLE..], self.syncer.durable());
        let record = &mut self.record;
        record.clear();
        record.extend_from_slice(&fields);
        record.extend_from_slice(payload);
        record.resize(record.len().next_multiple_of(log_record::ALIGNMENT), 0);
        let crc = record_crc(self.number, self.len, record);
        LittleEndian::write_u32(&mut record[log_record::CRC..], crc);
    }

    /// Returns the length of the part of the log that the operating system has received, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Creates a reference to this log for the header of the next log. The reference is valid once this log is
    /// durable.
    pub(crate) fn as_previous(&self) -> PreviousLog {
        PreviousLog { number: self.number, len: self.len }
    }

    /// Sequence number of the next record.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Returns the syncer that makes the log durable. Any number of threads may share it.
    pub(crate) fn syncer(&self) -> Arc<LogSyncer> {
        self.syncer.clone()
    }
}

fn encode_header(bits: u32, number: u64, header: LogHeader) -> [u8; log_header::LEN] {
    let mut bytes = [0; log_header::LEN];
    bytes[..log_header::VERSION].copy_from_slice(&format::LOG_MAGIC);
    LittleEndian::write_u32(&mut bytes[log_header::VERSION..], format::VERSION);
    bytes[log_header::BITS] = bits as u8;
    LittleEndian::write_u64(&mut bytes[log_header::NUMBER..], number);
    LittleEndian::write_u64(&mut bytes[log_header::FIRST_SEQUENCE..], header.first_sequence);
    let PreviousLog { number: before, len } = header.previous.unwrap_or(PreviousLog { number: 0, len: 0 });
    LittleEndian::write_u64(&mut bytes[log_header::PREVIOUS..], before);
    LittleEndian::write_u64(&mut bytes[log_header::PREVIOUS_LEN..], len);
    let crc = crc32fast::hash(&bytes[..log_header::CRC]);
    LittleEndian::write_u32(&mut bytes[log_header::CRC..], crc);
    bytes
}
