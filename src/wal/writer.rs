//! Writing a log.

use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use byteorder::{ByteOrder, LittleEndian};

use super::operation::Payload;
use super::reader::{LogStart, PreviousLog};
use super::record_crc;
use super::syncer::LogSyncer;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, log_header, log_record};
use crate::fs::{Fs, TEMPORARY, WriteFile};

/// The buffer for records is not kept when it is larger, in bytes.
const KEPT_BUFFER: usize = 1 << 20;

/// A log that is being written.
pub(crate) struct LogWriter<F> {
    path: PathBuf,
    file: Box<dyn WriteFile>,
    version: u32,
    number: u64,
    len: u64,
    next_sequence: u64,
    /// The record being written, so that it takes one call.
    record: Vec<u8>,
    /// The log was closed, or a record may be partly written: a record after it would not be read.
    failed: bool,
    syncer: Arc<LogSyncer>,
    fingerprints: PhantomData<fn(F)>,
}

impl<F: Fingerprint> LogWriter<F> {
    /// Creates a log, replacing an existing one. The file gets its name only when its header is durable, so a crash leaves no
    /// log without a header; the folder is not synced. The part of the previous log that the header names is durable. The
    /// version is the oldest that supports everything to be written.
    pub(crate) fn create(
        fs: &Arc<dyn Fs>,
        path: &Path,
        number: u64,
        start: LogStart,
    ) -> Result<LogWriter<F>> {
        if start.first_sequence > format::MAX_FIRST_SEQUENCE {
            let reason = "sequence numbers are exhausted: `salvage` the store into a new one";
            return Err(Error::Exhausted { path: path.to_path_buf(), reason });
        }
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(TEMPORARY);
        let temporary = PathBuf::from(temporary);
        let mut file = fs.create(&temporary).map_err(Error::io(&temporary, "create"))?;
        let handle = file.sync_handle().map_err(Error::io(path, "open"))?;
        let header = header(F::BITS, number, start);
        file.write_all(&header).map_err(Error::io(&temporary, "write"))?;
        file.sync().map_err(Error::io(&temporary, "sync"))?;
        fs.rename(&temporary, path).map_err(Error::io(path, "rename to"))?;
        let len = header.len() as u64;
        Ok(LogWriter {
            path: path.to_path_buf(),
            file,
            version: start.version,
            number,
            len,
            next_sequence: start.first_sequence,
            record: Vec::new(),
            failed: false,
            syncer: Arc::new(LogSyncer::new(path, handle, len)),
            fingerprints: PhantomData,
        })
    }

    /// Hands a record to the operating system in one write call; returns its sequence number. After a file error every further
    /// call fails: a record after a partial one would not be read.
    pub(crate) fn append(&mut self, payload: &Payload<F>) -> Result<u64> {
        if payload.is_empty() {
            return Err(Error::Bug("a record of a log without operations".to_string()));
        }
        if payload.version() > self.version {
            return Err(Error::Bug("a record of a log of an older version".to_string()));
        }
        self.write(payload.bytes())
    }

    /// Says that the log was closed: makes it durable, and ends it with a record that says so. One without records needs
    /// none. Nothing is written after it.
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
        self.record.shrink_to(KEPT_BUFFER);
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

    /// The version of the format.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// Bytes handed to the operating system.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The entry for this log in the header of the next log, valid once this log is durable.
    pub(crate) fn as_previous(&self) -> PreviousLog {
        PreviousLog { number: self.number, len: self.len }
    }

    /// The sequence number of the next record.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The syncer that makes the log durable, for any number of threads.
    pub(crate) fn syncer(&self) -> Arc<LogSyncer> {
        self.syncer.clone()
    }
}

fn header(bits: u32, number: u64, start: LogStart) -> [u8; log_header::LEN] {
    let mut header = [0; log_header::LEN];
    header[..log_header::VERSION].copy_from_slice(&format::LOG_MAGIC);
    LittleEndian::write_u32(&mut header[log_header::VERSION..], start.version);
    header[log_header::BITS] = bits as u8;
    LittleEndian::write_u64(&mut header[log_header::NUMBER..], number);
    LittleEndian::write_u64(&mut header[log_header::FIRST_SEQUENCE..], start.first_sequence);
    let PreviousLog { number: before, len } = start.previous.unwrap_or(PreviousLog { number: 0, len: 0 });
    LittleEndian::write_u64(&mut header[log_header::PREVIOUS..], before);
    LittleEndian::write_u64(&mut header[log_header::PREVIOUS_LEN..], len);
    let crc = crc32fast::hash(&header[..log_header::CRC]);
    LittleEndian::write_u32(&mut header[log_header::CRC..], crc);
    header
}
