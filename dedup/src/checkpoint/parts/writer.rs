//! Writing a part.

use std::path::Path;

use simstore::{Error, Fingerprint, Result};

use crate::checkpoint::checksummed_file::{MAX_LINE_BYTES, SealedWriter, json};
use crate::checkpoint::parts::header::{DocumentLine, End, Header, LineId, Modified, SectionEnd};
use simstore_corpus::Item;
use simstore_io::DocumentId;
use simstore_io::output::UnfinishedOutputs;

/// A part that is being written.
pub(crate) struct Writer {
    lines: SealedWriter,
    /// Lines of documents so far.
    count: u64,
    is_section: bool,
}

impl Writer {
    pub(crate) fn create(
        path: &Path,
        header: &Header,
        modified: &[Option<u64>],
        unfinished: &UnfinishedOutputs,
    ) -> Result<Writer> {
        let mut lines = SealedWriter::create(path, unfinished)?;
        lines.push(&json(header)?)?;
        lines.push(&json(&Modified { modified: modified.to_vec() })?)?;
        Ok(Writer { lines, count: 0, is_section: header.section.is_some() })
    }

    /// Writes malformed documents up to a position, counted from 0 in the part.
    pub(crate) fn push_bad(&mut self, up_to: u64) -> Result<()> {
        while self.count < up_to {
            self.lines.push(b"null")?;
            self.count += 1;
        }
        Ok(())
    }

    /// Writes a document, whose file has this place in the header; of a section, with lines from its start.
    pub(crate) fn push_document<F: Fingerprint>(&mut self, item: &Item<F>, file: usize) -> Result<()> {
        let line = DocumentLine {
            file,
            line: item.line,
            id: match &item.id {
                _ if self.is_section && item.has_position_id => None,
                DocumentId::Number(number) => Some(LineId::Number(*number)),
                DocumentId::Name(name) => Some(LineId::Name(name.into())),
            },
            fingerprint: item.fingerprint.map(|fingerprint| fingerprint.to_hex()),
            features: item.feature_count,
            sketches: item.signature.as_ref().map(|sketched| hex(&sketched.bands)),
            sum: item.signature.as_ref().map(|sketched| hex(&[sketched.sum])),
            text_bytes: item.text_bytes,
            replaced: item.replacements,
            check: format!("{:016x}", item.checksum),
            extra: item.extra.clone(),
        };
        let line = json(&line)?;
        if line.len() > MAX_LINE_BYTES {
            return Err(Error::Refused(format!(
                "{}:{}: the value for option `keep` is too long for a part: at most {MAX_LINE_BYTES} bytes",
                item.path.display(),
                item.line
            )));
        }
        self.lines.push(&line)?;
        self.count += 1;
        Ok(())
    }

    /// Completes the part. For a section of a file, also writes its lines and `is_rest` at this time.
    pub(crate) fn finish(mut self, section: Option<SectionEnd>) -> Result<()> {
        let (lines, rest) = (section.map(|end| end.lines), section.map(|end| end.is_rest));
        let end = json(&End { end: self.count, lines, rest })?;
        self.lines.push(&end)?;
        self.lines.finish()
    }
}

/// Numbers of 64 bits, one after the other.
fn hex(numbers: &[u64]) -> String {
    numbers.iter().map(|number| format!("{number:016x}")).collect()
}
