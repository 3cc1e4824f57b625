//! Reads the records of one open file in any format, or of the members of an archive.

use std::path::Path;
use std::sync::Arc;

use crate::bytes::input::Input;
use crate::bytes::length_limit::LengthLimit;
use crate::bytes::read_once::ReadOnceInputs;
use crate::bytes::section::Section;
use crate::formats::archive::{Archive, ArchiveMember};
use crate::formats::csv;
use crate::formats::detect::{self, Format};
use crate::formats::json_objects::JsonObjects;
#[cfg(feature = "parquet")]
use crate::formats::parquet;
use crate::formats::warc::{self, WarcPage};
use crate::reading::document_stream::DocumentStreamReader;
use crate::reading::record::{Record, RecordContent};
use crate::{Compression, DocumentFormat, DocumentOptions, ReadDiagnostic, ReadProgress};
use simstore::Result;

/// Reader of the records of one file. After an error, reading continues with the next readable record.
#[derive(Debug)]
pub(crate) enum RecordReader {
    Jsonl(Box<JsonObjects>),
    Table(Box<csv::CsvRows>),
    Warc(warc::WarcPages),
    Text {
        input: Input,
        limit: LengthLimit,
    },
    #[cfg(feature = "parquet")]
    Parquet(parquet::ParquetRows),
    Archive(Box<ArchiveRecords>),
    Stream(DocumentStreamReader),
    Ended,
}

impl RecordReader {
    pub(crate) fn open(
        path: &Path,
        format: DocumentFormat,
        compression: Compression,
        options: &DocumentOptions,
        #[cfg_attr(
            not(feature = "parquet"),
            expect(unused_variables, reason = "only Parquet can read single columns")
        )]
        is_projected: bool,
        progress: &Arc<ReadProgress>,
        read_once: &ReadOnceInputs,
    ) -> Result<RecordReader> {
        let input = || Input::open(path, compression, options.decompression_memory(), progress, read_once);
        match format {
            #[cfg(feature = "parquet")]
            DocumentFormat::Parquet => {
                Ok(RecordReader::Parquet(parquet::ParquetRows::open(path, options, is_projected, progress)?))
            }
            #[cfg(not(feature = "parquet"))]
            DocumentFormat::Parquet => Err(simstore::Error::BadArgument(format!(
                "{}: this simstore was built without Parquet; build it with the feature `parquet`",
                path.display()
            ))),
            DocumentFormat::Archive => Ok(RecordReader::Archive(Box::new(ArchiveRecords {
                archive: Archive::open(input()?, options.decompression_memory(), progress)?,
                current: RecordReader::Ended,
                options: options.clone(),
                progress: Arc::clone(progress),
            }))),
            _ => RecordReader::from_input(input()?, format, options),
        }
    }

    /// Opens a section of a file of JSON lines or of a Parquet file.
    pub(crate) fn from_section(
        section: &Section,
        options: &DocumentOptions,
        #[cfg_attr(
            not(feature = "parquet"),
            expect(unused_variables, reason = "only Parquet can read single columns")
        )]
        is_projected: bool,
        progress: &Arc<ReadProgress>,
    ) -> Result<RecordReader> {
        #[cfg(feature = "parquet")]
        if section.line_format.is_none() {
            return Ok(RecordReader::Parquet(parquet::ParquetRows::from_section(
                section, options, is_projected, progress,
            )?));
        }
        Ok(RecordReader::Jsonl(Box::new(JsonObjects::from_section(section, options, progress)?)))
    }

    /// Creates a reader for a format that is read as one stream of bytes. Returns an error for Parquet and archives.
    fn from_input(input: Input, format: DocumentFormat, options: &DocumentOptions) -> Result<RecordReader> {
        let table = |input: Input, delimiter| {
            Ok(csv::CsvRows::open(input.into_lines(options.encoding)?, delimiter, options)?
                .map_or(RecordReader::Ended, |rows| RecordReader::Table(Box::new(rows))))
        };
        match format {
            DocumentFormat::Jsonl => Ok(RecordReader::Jsonl(Box::new(JsonObjects::open(input, options)?))),
            DocumentFormat::Csv => table(input, b','),
            DocumentFormat::Tsv => table(input, b'\t'),
            DocumentFormat::Warc => {
                Ok(RecordReader::Warc(warc::WarcPages::new(input, options.length_limit())))
            }
            DocumentFormat::Text => Ok(RecordReader::Text { input, limit: options.length_limit() }),
            DocumentFormat::Parquet => {
                Err(input.file_error("Parquet cannot be read inside an archive; unpack the archive first"))
            }
            DocumentFormat::Archive => {
                Err(input.file_error("an archive within an archive, which is not supported: unpack it first"))
            }
        }
    }

    /// Returns the next record; `None` at the end of the file.
    ///
    /// # Errors
    /// See [`records`](crate::records).
    pub(crate) fn next(&mut self) -> Result<Option<Record>> {
        match self {
            RecordReader::Jsonl(objects) => Ok(objects.read()?.map(|(number, line)| {
                Record::new(
                    objects.path(),
                    number,
                    RecordContent::Jsonl { line, encoding: objects.encoding() },
                )
            })),
            RecordReader::Table(rows) => Ok(rows.read()?.map(|(line, row)| {
                Record::new(
                    rows.path(),
                    line,
                    RecordContent::Table { row, header: Arc::clone(rows.header()) },
                )
            })),
            RecordReader::Warc(pages) => Ok(pages.read()?.map(|page| {
                let WarcPage { number, bytes, header_bytes } = page;
                Record::new(pages.path(), number, RecordContent::Warc { bytes, header_bytes })
            })),
            RecordReader::Text { .. } => {
                let RecordReader::Text { mut input, limit } = std::mem::replace(self, RecordReader::Ended)
                else {
                    return Ok(None);
                };
                let bytes = input.read_all(limit)?;
                Ok(Some(Record::new(input.path(), 1, RecordContent::Text(bytes))))
            }
            #[cfg(feature = "parquet")]
            RecordReader::Parquet(rows) => Ok(rows
                .read()?
                .map(|(number, row)| Record::new(rows.path(), number, RecordContent::Parquet(row)))),
            RecordReader::Archive(members) => members.next(),
            RecordReader::Stream(documents) => documents.next(),
            RecordReader::Ended => Ok(None),
        }
    }
}

/// Reader of the records in an archive. Each member is read like a file in a folder.
#[derive(Debug)]
pub(crate) struct ArchiveRecords {
    archive: Archive,
    /// Reader of the current member.
    current: RecordReader,
    options: DocumentOptions,
    progress: Arc<ReadProgress>,
}

impl ArchiveRecords {
    fn next(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some(record) = self.current.next()? {
                return Ok(Some(record));
            }
            self.current = RecordReader::Ended;
            let Some(member) = self.archive.next()? else { return Ok(None) };
            self.current = self.open_member(member)?;
        }
    }

    fn open_member(&self, member: ArchiveMember) -> Result<RecordReader> {
        let ArchiveMember { path, reader } = member;
        if self.options.format.is_none() && detect::format_from_name(&path).is_none() {
            self.progress.add_diagnostic(ReadDiagnostic::UnknownExtension);
            return Ok(RecordReader::Ended);
        }
        let mut input =
            Input::from_archive_member(&path, reader, self.options.decompression_memory(), &self.progress)?;
        let head = input.peek(detect::HEAD_BYTES)?;
        let diagnostic = match detect::detect_unnamed(&path, &head, &self.options) {
            Ok(Some(Format::Documents(format))) => {
                return RecordReader::from_input(input, format, &self.options);
            }
            Ok(Some(Format::HexLines | Format::Raw { .. })) => ReadDiagnostic::FingerprintFile,
            Ok(None) => ReadDiagnostic::JsonWithoutText,
            Err(reason) => return Err(input.file_error(&reason)),
        };
        self.progress.add_diagnostic(diagnostic);
        Ok(RecordReader::Ended)
    }
}
