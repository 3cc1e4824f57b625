//! Documents from an iterator, kept in a temporary file if they must be read again.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::document::GIVEN;
use crate::reading::record::{Content, GivenDocument, Record};
use crate::{Document, DocumentId, IdRef};
use simstore::{Error, Result};

/// Bytes written to, or read from, the temporary file at a time.
const BUFFER: usize = 1 << 18;
/// Bytes of the length of a document that is put aside.
const LENGTH_BYTES: usize = 8;
/// Id and extra field of a document that is put aside; or path, line and reason of a malformed one.
type Fields = std::result::Result<(DocumentId, Option<String>), (String, u64, String)>;

/// An iterator of documents, shared by its readers. Each reader gets all documents if they are put aside, else only the first
/// reader does.
#[derive(Clone)]
pub struct GivenDocuments(Arc<Mutex<State>>);

struct State {
    documents: Box<dyn Iterator<Item = Result<Document>> + Send>,
    /// Documents that were taken, malformed ones included.
    taken: u64,
    end: End,
    aside: Option<Aside>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Ahead,
    Reached,
    /// After an error that is none of a document.
    Failed,
}

/// Documents that were taken, in a temporary file without a name.
struct Aside {
    folder: PathBuf,
    file: File,
    /// Bytes that are not yet written to the file.
    buffer: Vec<u8>,
    /// Bytes of the file and of the buffer.
    end: u64,
}

impl fmt::Debug for GivenDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GivenDocuments")
    }
}

impl GivenDocuments {
    /// Documents of an iterator, which are taken one by one.
    pub fn new(documents: impl Iterator<Item = Result<Document>> + Send + 'static) -> Self {
        let documents = Box::new(documents);
        GivenDocuments(Arc::new(Mutex::new(State { documents, taken: 0, end: End::Ahead, aside: None })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on each document that is taken is put aside, in a temporary file in this folder.
    ///
    /// # Errors
    /// [`Error::Io`] if nothing can be written there, [`Error::Refused`] if some were taken before.
    pub fn put_aside(&self, folder: &Path) -> Result<()> {
        let mut state = self.lock();
        if state.aside.is_some() {
            return Ok(());
        }
        if state.taken > 0 {
            return Err(taken_before());
        }
        let folder = folder.to_path_buf();
        let file = tempfile::tempfile_in(&folder).map_err(Error::io(&folder, "put documents aside in"))?;
        state.aside = Some(Aside { folder, file, buffer: Vec::new(), end: 0 });
        Ok(())
    }

    pub(crate) fn read(&self) -> GivenReader {
        let path = Path::new(GIVEN).into();
        GivenReader { given: self.clone(), path, line: 0, place: 0, ahead: Vec::new(), used: 0 }
    }
}

fn taken_before() -> Error {
    Error::Refused(format!("{GIVEN}: can be read only once, and were already read; save them first"))
}

impl State {
    /// The next document that nobody has taken.
    fn take(&mut self) -> Result<Option<Document>> {
        match self.end {
            End::Ahead => {}
            End::Reached => return Ok(None),
            End::Failed => {
                return Err(Error::Refused(format!("{GIVEN}: an earlier reading of them has failed")));
            }
        }
        let Some(document) = self.documents.next() else {
            self.end = End::Reached;
            return Ok(None);
        };
        if !matches!(document, Ok(_) | Err(Error::BadInput { .. })) {
            self.end = End::Failed;
        }
        if let (Some(aside), End::Ahead) = (&mut self.aside, self.end) {
            aside.push(&document).inspect_err(|_| self.end = End::Failed)?;
        }
        self.taken += 1;
        document.map(Some)
    }
}

impl Aside {
    fn failed(&self, error: io::Error) -> Error {
        Error::io(&self.folder, "put documents aside in")(error)
    }

    /// Writes the length of a document, its fields as JSON, and its text as it is.
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
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.file.seek(SeekFrom::End(0)).and_then(|_| self.file.write_all(&self.buffer));
        written.map_err(|error| self.failed(error))?;
        self.buffer.clear();
        Ok(())
    }

    /// Appends bytes of the file from `place` on to `bytes`, which then holds at least `least` bytes.
    fn read(&mut self, place: u64, bytes: &mut Vec<u8>, least: usize) -> Result<()> {
        self.flush()?;
        let more = (least - bytes.len()).max(BUFFER) as u64;
        let read = self.file.seek(SeekFrom::Start(place));
        read.and_then(|_| (&self.file).take(more).read_to_end(bytes)).map_err(|error| self.failed(error))?;
        if bytes.len() < least { Err(self.failed(ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
    }
}

/// Reads documents that are given.
#[derive(Debug)]
pub(crate) struct GivenReader {
    given: GivenDocuments,
    path: Arc<Path>,
    /// Documents that were read.
    line: u64,
    /// Offset of the next document in the temporary file.
    place: u64,
    /// Bytes read ahead from that file; the first `used` of them are consumed.
    ahead: Vec<u8>,
    used: usize,
}

impl GivenReader {
    pub(crate) fn next(&mut self) -> Result<Option<Record>> {
        let given = self.given.clone();
        let mut state = given.lock();
        let document = if self.line < state.taken {
            let aside = state.aside.as_mut().ok_or_else(taken_before)?;
            self.read_again(aside)?.map(Some)
        } else {
            let document = state.take();
            self.place = state.aside.as_ref().map_or(0, |aside| aside.end);
            (self.ahead, self.used) = (Vec::new(), 0);
            document
        };
        self.line += 1;
        let Some(Document { id, text, extra, .. }) = document? else { return Ok(None) };
        let content = Content::Given(GivenDocument { id, text, extra });
        Ok(Some(Record::new(&self.path, self.line, content)))
    }

    /// The next document of those that were put aside.
    fn read_again(&mut self, aside: &mut Aside) -> Result<Result<Document>> {
        let length =
            self.some(aside, LENGTH_BYTES)?.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let length = (length as usize).saturating_add(LENGTH_BYTES);
        let bytes = &self.some(aside, length)?[LENGTH_BYTES..];
        let mut fields = serde_json::Deserializer::from_slice(bytes).into_iter::<Fields>();
        let document = match fields.next() {
            Some(Ok(Ok((id, extra)))) => {
                let text = String::from_utf8_lossy(&bytes[fields.byte_offset()..]).into_owned();
                Ok(Document { extra, ..Document::new(id, text) })
            }
            Some(Ok(Err((path, line, reason)))) => Err(Error::BadInput { path: path.into(), line, reason }),
            _ => return Err(aside.failed(ErrorKind::InvalidData.into())),
        };
        self.place += length as u64;
        self.used += length;
        Ok(document)
    }

    /// So many bytes from the next document on.
    fn some(&mut self, aside: &mut Aside, count: usize) -> Result<&[u8]> {
        if self.ahead.len() - self.used < count {
            self.ahead.drain(..self.used);
            self.used = 0;
            let behind = self.place + self.ahead.len() as u64;
            aside.read(behind, &mut self.ahead, count)?;
        }
        Ok(&self.ahead[self.used..self.used + count])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(reader: &mut GivenReader) -> Vec<String> {
        let mut texts = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(record)) => {
                    let document = record.document(&crate::DocumentOptions::default()).unwrap();
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
    fn what_is_put_aside_is_read_again_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let expected = texts(&mut GivenDocuments::new(some(500)).read());
        assert_eq!(expected.len(), 500);
        let given = GivenDocuments::new(some(500));
        given.put_aside(folder.path()).unwrap();
        // One that stops, one that overtakes it, and others behind and beside these.
        let (mut first, mut second) = (given.read(), given.read());
        let mut begun: Vec<_> =
            (0..100).map(|_| first.next().map(|record| record.map(|one| one.line()))).collect();
        assert!(matches!(begun.pop(), Some(Ok(Some(100)))));
        assert_eq!(texts(&mut second), expected);
        assert_eq!(texts(&mut first), expected[100..]);
        assert_eq!(texts(&mut given.read()), expected);
    }

    #[test]
    fn what_is_not_put_aside_is_there_once() {
        let folder = tempfile::tempdir().unwrap();
        let given = GivenDocuments::new(some(10));
        let mut reader = given.read();
        reader.next().unwrap();
        let before =
            |result: Result<()>| matches!(result, Err(Error::Refused(reason)) if reason.contains("once"));
        assert!(before(given.put_aside(folder.path())));
        assert!(before(given.read().next().map(drop)));
        assert_eq!(texts(&mut reader).len(), 9);
    }

    #[test]
    fn after_an_error_nothing_seems_complete() {
        let failing = some(3).chain([Err(Error::Cancelled)]).chain(some(1));
        let given = GivenDocuments::new(failing);
        given.put_aside(&std::env::temp_dir()).unwrap();
        for _ in 0..2 {
            let mut reader = given.read();
            let read: Vec<_> = std::iter::repeat_with(|| reader.next()).take_while(Result::is_ok).collect();
            assert_eq!(read.len(), 3);
            assert!(reader.next().is_err());
        }
    }
}
