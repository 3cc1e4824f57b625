//! Documents from an iterator. They are spooled (copied to a temporary file) if they must be read again.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::document::STREAM_NAME;
use crate::reading::record::{InMemoryDocument, Record, RecordContent};
use crate::{Document, DocumentId, IdRef};
use simstore::{Error, Result};

/// Size in bytes of one write to, or one read from, the temporary file of spooled documents.
const BUFFER_BYTES: usize = 1 << 18;
/// Size in bytes of the length that precedes each document in the temporary file of spooled documents.
const LENGTH_BYTES: usize = 8;
/// What the temporary file of a [`DocumentStream`] stores before the text of a document: its id and the value of its
/// extra field. For a malformed document, it stores the path, the line, and the reason of the error instead.
type SpooledFields = std::result::Result<(DocumentId, Option<String>), (String, u64, String)>;

/// An iterator of documents that several readers share. If the documents are spooled (copied to a temporary file), each
/// reader gets all of them; otherwise only the first reader does.
#[derive(Clone)]
pub struct DocumentStream(Arc<Mutex<StreamState>>);

struct StreamState {
    documents: Box<dyn Iterator<Item = Result<Document>> + Send>,
    /// Number of items taken from `documents`, including the errors for malformed documents.
    taken: u64,
    status: StreamStatus,
    spool: Option<Spool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamStatus {
    Open,
    Ended,
    /// No more documents can be read: their iterator has returned an error other than a malformed document, or copying
    /// them to the temporary file has failed.
    Failed,
}

/// An unnamed temporary file with the documents that a [`DocumentStream`] has taken from its iterator.
struct Spool {
    folder: PathBuf,
    file: File,
    /// Bytes that are not yet written to the file.
    buffer: Vec<u8>,
    /// Length in bytes of the file and the buffer together.
    end: u64,
}

impl fmt::Debug for DocumentStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DocumentStream")
    }
}

impl DocumentStream {
    /// Wraps an iterator. A document is taken from it only when a reader needs the document.
    pub fn new(documents: impl Iterator<Item = Result<Document>> + Send + 'static) -> Self {
        let documents = Box::new(documents);
        DocumentStream(Arc::new(Mutex::new(StreamState {
            documents,
            taken: 0,
            status: StreamStatus::Open,
            spool: None,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts spooling: each document that is taken from the iterator is also written to a temporary file in `folder`,
    /// so that other readers can read it again.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be created; [`Error::Refused`] if documents were already taken.
    pub fn spool_to(&self, folder: &Path) -> Result<()> {
        let mut state = self.lock();
        if state.spool.is_some() {
            return Ok(());
        }
        if state.taken > 0 {
            return Err(already_taken());
        }
        let folder = folder.to_path_buf();
        let file = tempfile::tempfile_in(&folder).map_err(Error::io(&folder, "put documents aside in"))?;
        state.spool = Some(Spool { folder, file, buffer: Vec::new(), end: 0 });
        Ok(())
    }

    pub(crate) fn reader(&self) -> DocumentStreamReader {
        let path = Path::new(STREAM_NAME).into();
        DocumentStreamReader { stream: self.clone(), path, line: 0, offset: 0, ahead: Vec::new(), used: 0 }
    }
}

fn already_taken() -> Error {
    Error::Refused(format!("{STREAM_NAME}: can be read only once, and were already read; save them first"))
}

impl StreamState {
    /// Takes the next document from `documents`. If there is a `spool`, also appends the document to it.
    fn take(&mut self) -> Result<Option<Document>> {
        match self.status {
            StreamStatus::Open => {}
            StreamStatus::Ended => return Ok(None),
            StreamStatus::Failed => {
                return Err(Error::Refused(format!("{STREAM_NAME}: an earlier reading of them has failed")));
            }
        }
        let Some(document) = self.documents.next() else {
            self.status = StreamStatus::Ended;
            return Ok(None);
        };
        if !matches!(document, Ok(_) | Err(Error::BadInput { .. })) {
            self.status = StreamStatus::Failed;
        }
        if let (Some(spool), StreamStatus::Open) = (&mut self.spool, self.status) {
            spool.push(&document).inspect_err(|_| self.status = StreamStatus::Failed)?;
        }
        self.taken += 1;
        document.map(Some)
    }
}

impl Spool {
    fn failed(&self, error: io::Error) -> Error {
        Error::io(&self.folder, "put documents aside in")(error)
    }

    /// Appends a document, or the error for a malformed one: the length of all that follows, the [`SpooledFields`] as
    /// JSON, and the text.
    fn push(&mut self, document: &Result<Document>) -> Result<()> {
        let (fields, text) = match document {
            Ok(Document { id, text, extra, .. }) => (Ok((IdRef::from(id), extra)), &**text),
            Err(Error::BadInput { path, line, reason }) => (Err((path.to_string_lossy(), line, reason)), ""),
            Err(_) => return Ok(()),
        };
        let start = self.buffer.len();
        self.buffer.extend([0; LENGTH_BYTES]);
        serde_json::to_writer(&mut self.buffer, &fields).map_err(|error| self.failed(error.into()))?;
        self.buffer.extend(text.as_bytes());
        let length = (self.buffer.len() - start - LENGTH_BYTES) as u64;
        self.buffer[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        self.end += length + LENGTH_BYTES as u64;
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.file.seek(SeekFrom::End(0)).and_then(|_| self.file.write_all(&self.buffer));
        written.map_err(|error| self.failed(error))?;
        self.buffer.clear();
        Ok(())
    }

    /// Reads the temporary file from `offset` on, and appends what it reads to `bytes`, until `bytes` has a length of
    /// at least `min_bytes`.
    fn read(&mut self, offset: u64, bytes: &mut Vec<u8>, min_bytes: usize) -> Result<()> {
        self.flush()?;
        let more = (min_bytes - bytes.len()).max(BUFFER_BYTES) as u64;
        let read = self.file.seek(SeekFrom::Start(offset));
        read.and_then(|_| (&self.file).take(more).read_to_end(bytes)).map_err(|error| self.failed(error))?;
        if bytes.len() < min_bytes { Err(self.failed(ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
    }
}

/// Reader of a [`DocumentStream`].
#[derive(Debug)]
pub(crate) struct DocumentStreamReader {
    stream: DocumentStream,
    path: Arc<Path>,
    /// Position of the last document that was read, from 1; 0 at the start. Documents of an iterator have positions
    /// instead of lines.
    line: u64,
    /// Offset of the next document in the temporary file of spooled documents, in bytes.
    offset: u64,
    /// Bytes of spooled documents, read ahead from their temporary file. The documents in the first `used` bytes were
    /// already returned.
    ahead: Vec<u8>,
    used: usize,
}

impl DocumentStreamReader {
    pub(crate) fn next(&mut self) -> Result<Option<Record>> {
        let stream = self.stream.clone();
        let mut state = stream.lock();
        let document = if self.line < state.taken {
            let spool = state.spool.as_mut().ok_or_else(already_taken)?;
            self.read_spooled(spool)?.map(Some)
        } else {
            let document = state.take();
            self.offset = state.spool.as_ref().map_or(0, |spool| spool.end);
            (self.ahead, self.used) = (Vec::new(), 0);
            document
        };
        self.line += 1;
        let Some(Document { id, text, extra, .. }) = document? else { return Ok(None) };
        let content = RecordContent::InMemory(InMemoryDocument { id, text, extra });
        Ok(Some(Record::new(&self.path, self.line, content)))
    }

    /// Reads the next document from `spool`. The inner result is an error if the document is malformed.
    fn read_spooled(&mut self, spool: &mut Spool) -> Result<Result<Document>> {
        let length =
            self.peek(spool, LENGTH_BYTES)?.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let length = (length as usize).saturating_add(LENGTH_BYTES);
        let bytes = &self.peek(spool, length)?[LENGTH_BYTES..];
        let mut fields = serde_json::Deserializer::from_slice(bytes).into_iter::<SpooledFields>();
        let document = match fields.next() {
            Some(Ok(Ok((id, extra)))) => {
                let text = String::from_utf8_lossy(&bytes[fields.byte_offset()..]).into_owned();
                Ok(Document { extra, ..Document::new(id, text) })
            }
            Some(Ok(Err((path, line, reason)))) => Err(Error::BadInput { path: path.into(), line, reason }),
            _ => return Err(spool.failed(ErrorKind::InvalidData.into())),
        };
        self.offset += length as u64;
        self.used += length;
        Ok(document)
    }

    /// Returns the `count` bytes of the temporary file that start at the next document, without consuming them.
    fn peek(&mut self, spool: &mut Spool, count: usize) -> Result<&[u8]> {
        if self.ahead.len() - self.used < count {
            self.ahead.drain(..self.used);
            self.used = 0;
            let end = self.offset + self.ahead.len() as u64;
            spool.read(end, &mut self.ahead, count)?;
        }
        Ok(&self.ahead[self.used..self.used + count])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(reader: &mut DocumentStreamReader) -> Vec<String> {
        let mut texts = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(record)) => {
                    let document = record.into_document(&crate::DocumentOptions::default()).unwrap();
                    texts.push(format!(
                        "{} {} {} {:?}",
                        document.line, document.id, document.text, document.extra
                    ));
                }
                Ok(None) => return texts,
                Err(error) => texts.push(error.to_string()),
            }
        }
    }

    fn some(count: u64) -> impl Iterator<Item = Result<Document>> + Send + 'static {
        (0..count).map(|i| match i % 7 {
            3 => Err(Error::BadInput { path: "-".into(), line: i + 1, reason: "is none".to_owned() }),
            4 => Ok(Document::new(DocumentId::Name(format!("\u{e9}{i}")), String::new())),
            5 => Ok(Document {
                extra: Some(String::new()),
                ..Document::new(DocumentId::Name(i.to_string()), "\"\0\r\n\u{7f}\u{1f600}\\".to_owned())
            }),
            6 => Ok(Document::new(DocumentId::Number(u64::MAX - i), String::new())),
            _ => Ok(Document {
                extra: (i % 2 == 0).then(|| i.to_string()),
                ..Document::new(DocumentId::Number(i), "word ".repeat((i * i % 4000) as usize))
            }),
        })
    }

    #[test]
    fn spooled_inputs_are_read_again_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let expected = texts(&mut DocumentStream::new(some(500)).reader());
        assert_eq!(expected.len(), 500);
        let given = DocumentStream::new(some(500));
        given.spool_to(folder.path()).unwrap();
        // One reader stops in the middle, a second overtakes it, and further readers start later.
        let (mut first, mut second) = (given.reader(), given.reader());
        let mut begun: Vec<_> =
            (0..100).map(|_| first.next().map(|record| record.map(|one| one.line()))).collect();
        assert!(matches!(begun.pop(), Some(Ok(Some(100)))));
        assert_eq!(texts(&mut second), expected);
        assert_eq!(texts(&mut first), expected[100..]);
        assert_eq!(texts(&mut given.reader()), expected);
    }

    #[test]
    fn unspooled_pipes_are_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let given = DocumentStream::new(some(10));
        let mut reader = given.reader();
        reader.next().unwrap();
        let before =
            |result: Result<()>| matches!(result, Err(Error::Refused(reason)) if reason.contains("once"));
        assert!(before(given.spool_to(folder.path())));
        assert!(before(given.reader().next().map(drop)));
        assert_eq!(texts(&mut reader).len(), 9);
    }

    #[test]
    fn after_an_error_nothing_seems_complete() {
        let failing = some(3).chain([Err(Error::Cancelled)]).chain(some(1));
        let given = DocumentStream::new(failing);
        given.spool_to(&std::env::temp_dir()).unwrap();
        for _ in 0..2 {
            let mut reader = given.reader();
            let read: Vec<_> = std::iter::repeat_with(|| reader.next()).take_while(Result::is_ok).collect();
            assert_eq!(read.len(), 3);
            assert!(reader.next().is_err());
        }
    }
}
