//! Writing a part.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use simstore::{Error, Fingerprint, Result};
use xxhash_rust::xxh3::Xxh3;

use super::header::{DocumentLine, End, Header, LineId, MAX_LINE_BYTES, Modified, SectionEnd, TRAILER, json};
use crate::output::{Output, Unfinished};
use crate::{DocumentId, Item};

/// A part that is being written.
pub(super) struct Writer {
    path: PathBuf,
    frame: zstd::Encoder<'static, Hashed>,
    /// Lines of documents so far.
    count: u64,
    is_section: bool,
}

/// An output, and the checksum of what it got.
struct Hashed {
    output: Output,
    hash: Xxh3,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = Write::write(&mut self.output, bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(&mut self.output)
    }
}

impl Writer {
    pub(super) fn create(
        path: &Path,
        header: &Header,
        modified: &[Option<u64>],
        unfinished: &Unfinished,
    ) -> Result<Writer> {
        let output = Hashed { output: Output::create_as_it_is(path, unfinished)?, hash: Xxh3::new() };
        let frame = zstd::Encoder::new(output, 1).map_err(Error::io(path, "write"))?;
        let is_section = header.section.is_some();
        let mut writer = Writer { path: path.to_path_buf(), frame, count: 0, is_section };
        writer.push(&json(header)?)?;
        writer.push(&json(&Modified { modified: modified.to_vec() })?)?;
        Ok(writer)
    }

    fn push(&mut self, line: &[u8]) -> Result<()> {
        let written = self.frame.write_all(line).and_then(|()| self.frame.write_all(b"\n"));
        written.map_err(Error::io(&self.path, "write"))
    }

    /// Writes malformed documents up to a position, counted from 0 in the part.
    pub(super) fn push_bad(&mut self, up_to: u64) -> Result<()> {
        while self.count < up_to {
            self.push(b"null")?;
            self.count += 1;
        }
        Ok(())
    }

    /// Writes a document, whose file has this place in the header; of a section, with lines from its start.
    pub(super) fn push_document<F: Fingerprint>(&mut self, item: &Item<F>, file: usize) -> Result<()> {
        let line = DocumentLine {
            file,
            line: item.line,
            id: match &item.id {
                _ if self.is_section && item.is_placed => None,
                DocumentId::Number(number) => Some(LineId::Number(*number)),
                DocumentId::Name(name) => Some(LineId::Name(name.into())),
            },
            fingerprint: item.fingerprint.map(|fingerprint| fingerprint.to_hex()),
            features: item.features,
            sketches: item.sketched.as_ref().map(|sketched| hex(&sketched.sketches)),
            sum: item.sketched.as_ref().map(|sketched| hex(&[sketched.sum])),
            members: item.sketched.as_ref().and_then(|sketched| Some(hex(sketched.members.as_deref()?))),
            text_bytes: item.text_bytes,
            replaced: item.replaced,
            check: format!("{:016x}", item.checksum),
            extra: item.extra.clone(),
        };
        let line = json(&line)?;
        if line.len() > MAX_LINE_BYTES {
            return Err(Error::Refused(format!(
                "{}:{}: the field of option `keep` is too long to be kept in a part: at most {MAX_LINE_BYTES} bytes",
                item.path.display(),
                item.line
            )));
        }
        self.push(&line)?;
        self.count += 1;
        Ok(())
    }

    /// Completes the part; of a section, with what is known of it now.
    pub(super) fn finish(mut self, section: Option<SectionEnd>) -> Result<()> {
        let (lines, rest) = (section.map(|end| end.lines), section.map(|end| end.is_rest));
        let end = json(&End { end: self.count, lines, rest })?;
        self.push(&end)?;
        let Hashed { mut output, hash } = self.frame.finish().map_err(Error::io(&self.path, "write"))?;
        output.push(&TRAILER)?;
        output.push(&hash.digest().to_le_bytes())?;
        output.finish()
    }
}

/// Numbers of 64 bits, one after the other.
fn hex(numbers: &[u64]) -> String {
    numbers.iter().map(|number| format!("{number:016x}")).collect()
}
