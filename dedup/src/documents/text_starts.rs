//! Starts of texts, for the report page. They are put aside when documents are read a second time to compare their features, so
//! that the page needs no further reading for them.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};

use simstore::{Error, Result};
use simstore_corpus::spill::{TemporaryFolder, read_exact_at};

/// Length of the start of a text, in bytes. It bounds the time of a comparison.
const MAX_TEXT_BYTES: usize = 32 << 10;
/// Size of the write buffer, in bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// Start of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextStart {
    pub(crate) text: String,
    /// Whether the text goes on.
    pub(crate) is_cut: bool,
}

impl TextStart {
    pub(crate) fn new(text: &str) -> TextStart {
        let end = (0..=text.len().min(MAX_TEXT_BYTES)).rev().find(|&end| text.is_char_boundary(end));
        let start = &text[..end.unwrap_or_default()];
        TextStart { text: start.to_owned(), is_cut: start.len() < text.len() }
    }
}

/// Temporary file with the starts of texts, by the index of their document.
#[derive(Debug)]
pub(crate) struct TextStarts {
    temporary: Arc<TemporaryFolder>,
    written: Mutex<WrittenStarts>,
}

#[derive(Debug)]
struct WrittenStarts {
    file: BufWriter<File>,
    /// Documents in ascending order.
    rows: Vec<WrittenStart>,
    /// Size of the file in bytes.
    end: u64,
}

#[derive(Clone, Copy, Debug)]
struct WrittenStart {
    document: u64,
    offset: u64,
    length: u32,
    is_cut: bool,
}

impl TextStarts {
    pub(crate) fn new(temporary: &Arc<TemporaryFolder>) -> Result<TextStarts> {
        let file =
            tempfile::tempfile_in(temporary.parent()).map_err(|error| temporary.write_error(&error))?;
        let written =
            WrittenStarts { file: BufWriter::with_capacity(BUFFER_BYTES, file), rows: Vec::new(), end: 0 };
        Ok(TextStarts { temporary: Arc::clone(temporary), written: Mutex::new(written) })
    }

    /// Appends the start of the text of a document. Documents come in ascending order; others are left out.
    pub(crate) fn push(&self, document: u64, start: &TextStart) -> Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.rows.last().is_some_and(|last| last.document >= document) {
            return Ok(());
        }
        let (offset, length) = (written.end, start.text.len() as u32);
        written.file.write_all(start.text.as_bytes()).map_err(|error| self.temporary.write_error(&error))?;
        self.temporary.counts.add_written(length.into());
        written.rows.push(WrittenStart { document, offset, length, is_cut: start.is_cut });
        written.end += u64::from(length);
        Ok(())
    }

    /// Returns the start of the text of a document; `None` if it was not put aside.
    pub(crate) fn get(&self, document: u64) -> Result<Option<TextStart>> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.file.flush().map_err(|error| self.temporary.write_error(&error))?;
        let Ok(at) = written.rows.binary_search_by_key(&document, |row| row.document) else {
            return Ok(None);
        };
        let WrittenStart { offset, length, is_cut, .. } = written.rows[at];
        let mut bytes = vec![0; length as usize];
        read_exact_at(written.file.get_ref(), &mut bytes, offset)
            .map_err(Error::io(self.temporary.parent(), "read what was put aside in"))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::Bug("a text that was put aside is not UTF-8".to_owned()))?;
        Ok(Some(TextStart { text, is_cut }))
    }
}

impl Drop for TextStarts {
    fn drop(&mut self) {
        let written = self.written.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.temporary.counts.add_removed(written.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simstore_io::output::UnfinishedOutputs;

    #[test]
    fn starts_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let temporary =
            TemporaryFolder::new(Some(folder.path()), &UnfinishedOutputs::default(), &()).unwrap();
        let starts = TextStarts::new(&temporary).unwrap();
        let long = "好".repeat(MAX_TEXT_BYTES);
        let texts = [(3, ""), (5, "to be"), (9, long.as_str())];
        for (document, text) in texts {
            starts.push(document, &TextStart::new(text)).unwrap();
            assert_eq!(starts.get(document).unwrap().unwrap(), TextStart::new(text));
        }
        starts.push(5, &TextStart::new("again")).unwrap();
        assert_eq!(starts.get(5).unwrap().unwrap().text, "to be");
        assert_eq!(starts.get(4).unwrap(), None);
        let cut = starts.get(9).unwrap().unwrap();
        assert!(cut.is_cut && cut.text.len() > MAX_TEXT_BYTES - 3 && cut.text.len() <= MAX_TEXT_BYTES);
    }
}
