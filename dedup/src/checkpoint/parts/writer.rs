//! Writer of part files.

use std::path::Path;

use simstore::{Error, Fingerprint, Result};

use crate::checkpoint::checksummed_file::{ChecksummedWriter, MAX_LINE_BYTES, to_json_line};
use crate::checkpoint::parts::header::{
    DocumentLine, DocumentLineId, EndLine, ModifiedLine, PartHeader, SectionEnd,
};
use simstore_corpus::Item;
use simstore_io::DocumentId;
use simstore_io::output::UnfinishedOutputs;

/// Writes a part file. The file appears under its name only when it is complete.
pub(crate) struct PartFileWriter {
    lines: ChecksummedWriter,
    /// Number of documents written, including malformed ones.
    count: u64,
    is_section: bool,
}

impl PartFileWriter {
    pub(crate) fn create(
        path: &Path,
        header: &PartHeader,
        modified: &[Option<u64>],
        unfinished: &UnfinishedOutputs,
    ) -> Result<PartFileWriter> {
        let mut lines = ChecksummedWriter::create(path, unfinished)?;
        lines.push_line(&to_json_line(header)?)?;
        lines.push_line(&to_json_line(&ModifiedLine { modified: modified.to_vec() })?)?;
        Ok(PartFileWriter { lines, count: 0, is_section: header.section.is_some() })
    }

    /// Writes lines of malformed documents until the part file has `up_to` documents.
    pub(crate) fn push_malformed_until(&mut self, up_to: u64) -> Result<()> {
        while self.count < up_to {
            self.lines.push_line(b"null")?;
            self.count += 1;
        }
        Ok(())
    }

    /// Writes the line of a document. `file` is the index of its input file in the header. For a section, the line
    /// number in `item` must count from the start of the section.
    pub(crate) fn push_document<F: Fingerprint>(&mut self, item: &Item<F>, file: usize) -> Result<()> {
        let line = DocumentLine {
            file,
            line: item.line,
            id: match &item.id {
                _ if self.is_section && item.has_position_id => None,
                DocumentId::Number(number) => Some(DocumentLineId::Number(*number)),
                DocumentId::Name(name) => Some(DocumentLineId::Name(name.into())),
            },
            fingerprint: item.fingerprint.map(|fingerprint| fingerprint.to_hex()),
            features: item.feature_count,
            bands: item.signature.as_ref().map(|signature| hex(&signature.bands)),
            sum: item.signature.as_ref().map(|signature| hex(&[signature.sum])),
            text_bytes: item.text_bytes,
            replaced: item.replacements,
            check: format!("{:016x}", item.checksum),
            extra: item.extra.clone(),
        };
        let line = to_json_line(&line)?;
        if line.len() > MAX_LINE_BYTES {
            return Err(Error::Refused(format!(
                "{}:{}: the value for option `keep` is too long for a part: at most {MAX_LINE_BYTES} bytes",
                item.path.display(),
                item.line
            )));
        }
        self.lines.push_line(&line)?;
        self.count += 1;
        Ok(())
    }

    /// Writes the last line, and renames the file to its final name. `section` is the outcome of reading the section;
    /// `None` if the part has whole files.
    pub(crate) fn finish(mut self, section: Option<SectionEnd>) -> Result<()> {
        let (lines, rest) = (section.map(|end| end.lines), section.map(|end| end.is_end_of_file));
        let end = to_json_line(&EndLine { end: self.count, lines, rest })?;
        self.lines.push_line(&end)?;
        self.lines.finish()
    }
}

/// Formats numbers as 16 hexadecimal digits each, without separators.
fn hex(numbers: &[u64]) -> String {
    numbers.iter().map(|number| format!("{number:016x}")).collect()
}
