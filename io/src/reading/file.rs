//! An open file of documents: record after record, or member after member.

use std::path::Path;
use std::sync::Arc;

use crate::bytes::input::Input;
use crate::bytes::limit::Longest;
use crate::bytes::pipes::Pipes;
use crate::bytes::section::Section;
use crate::formats::archive::{Archive, Member};
use crate::formats::csv;
use crate::formats::detect::{self, Format};
use crate::formats::objects::Objects;
#[cfg(feature = "parquet")]
use crate::formats::parquet;
use crate::formats::warc::{self, Page};
use crate::reading::in_memory::GivenReader;
use crate::reading::record::{Content, Record};
use crate::{Compression, DocumentFormat, DocumentOptions, ReadNote, ReadProgress};
use simstore::Result;

/// An open file of documents. After an error, reading continues with the next readable document.
#[derive(Debug)]
pub(crate) enum File {
    Jsonl(Box<Objects>),
    Table(Box<csv::Rows>),
    Warc(warc::Pages),
    Text {
        input: Input,
        longest: Longest,
    },
    #[cfg(feature = "parquet")]
    Parquet(parquet::Rows),
    Archive(Box<Members>),
    Given(GivenReader),
    Ended,
}

impl File {
    pub(crate) fn open(
        path: &Path,
        format: DocumentFormat,
        compression: Compression,
        options: &DocumentOptions,
        #[cfg_attr(
            not(feature = "parquet"),
            expect(unused_variables, reason = "only Parquet has columns apart")
        )]
        is_projected: bool,
        progress: &Arc<ReadProgress>,
        pipes: &Pipes,
    ) -> Result<File> {
        let input = || Input::open(path, compression, options.memory_of_unpacking(), progress, pipes);
        match format {
            #[cfg(feature = "parquet")]
            DocumentFormat::Parquet => {
                Ok(File::Parquet(parquet::Rows::open(path, options, is_projected, progress)?))
            }
            #[cfg(not(feature = "parquet"))]
            DocumentFormat::Parquet => Err(simstore::Error::BadArgument(format!(
                "{}: this simstore was built without Parquet; build it with the feature `parquet`",
                path.display()
            ))),
            DocumentFormat::Archive => Ok(File::Archive(Box::new(Members {
                archive: Archive::open(input()?, options.memory_of_unpacking(), progress)?,
                open: File::Ended,
                options: options.clone(),
                progress: Arc::clone(progress),
            }))),
            _ => File::of_input(input()?, format, options),
        }
    }

    /// A section of a file of lines, or of Parquet.
    pub(crate) fn of_section(
        section: &Section,
        options: &DocumentOptions,
        #[cfg_attr(
            not(feature = "parquet"),
            expect(unused_variables, reason = "only Parquet has columns apart")
        )]
        is_projected: bool,
        progress: &Arc<ReadProgress>,
    ) -> Result<File> {
        #[cfg(feature = "parquet")]
        if section.lines.is_none() {
            return Ok(File::Parquet(parquet::Rows::of_section(section, options, is_projected, progress)?));
        }
        Ok(File::Jsonl(Box::new(Objects::of_section(section, options, progress)?)))
    }

    /// A file in a format that needs no more than its bytes from first to last.
    fn of_input(input: Input, format: DocumentFormat, options: &DocumentOptions) -> Result<File> {
        let table = |input: Input, delimiter| {
            Ok(csv::Rows::open(input.into_lines(options.encoding)?, delimiter, options)?
                .map_or(File::Ended, |rows| File::Table(Box::new(rows))))
        };
        match format {
            DocumentFormat::Jsonl => Ok(File::Jsonl(Box::new(Objects::open(input, options)?))),
            DocumentFormat::Csv => table(input, b','),
            DocumentFormat::Tsv => table(input, b'\t'),
            DocumentFormat::Warc => Ok(File::Warc(warc::Pages::new(input, options.longest()))),
            DocumentFormat::Text => Ok(File::Text { input, longest: options.longest() }),
            DocumentFormat::Parquet => {
                Err(input.bad_file("Parquet cannot be read inside an archive; unpack the archive first"))
            }
            DocumentFormat::Archive => {
                Err(input.bad_file("an archive within an archive, which is not supported: unpack it first"))
            }
        }
    }

    /// The next record.
    ///
    /// # Errors
    /// As [`records`](crate::records).
    pub(crate) fn next(&mut self) -> Result<Option<Record>> {
        match self {
            File::Jsonl(objects) => Ok(objects.read()?.map(|(number, line)| {
                Record::new(objects.path(), number, Content::Jsonl { line, encoding: objects.encoding() })
            })),
            File::Table(rows) => Ok(rows.read()?.map(|(line, row)| {
                Record::new(rows.path(), line, Content::Table { row, header: Arc::clone(rows.header()) })
            })),
            File::Warc(pages) => Ok(pages.read()?.map(|page| {
                let Page { number, bytes, header_bytes } = page;
                Record::new(pages.path(), number, Content::Warc { bytes, header_bytes })
            })),
            File::Text { .. } => {
                let File::Text { mut input, longest } = std::mem::replace(self, File::Ended) else {
                    return Ok(None);
                };
                let bytes = input.read_all(longest)?;
                Ok(Some(Record::new(input.path(), 1, Content::Text(bytes))))
            }
            #[cfg(feature = "parquet")]
            File::Parquet(rows) => {
                Ok(rows.read()?.map(|(number, row)| Record::new(rows.path(), number, Content::Parquet(row))))
            }
            File::Archive(members) => members.next(),
            File::Given(documents) => documents.next(),
            File::Ended => Ok(None),
        }
    }
}

/// The members of an archive, each read as a file of a folder would be.
#[derive(Debug)]
pub(crate) struct Members {
    archive: Archive,
    /// The member that is being read.
    open: File,
    options: DocumentOptions,
    progress: Arc<ReadProgress>,
}

impl Members {
    fn next(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some(record) = self.open.next()? {
                return Ok(Some(record));
            }
            self.open = File::Ended;
            let Some(member) = self.archive.next()? else { return Ok(None) };
            self.open = self.open_member(member)?;
        }
    }

    fn open_member(&self, member: Member) -> Result<File> {
        let Member { path, reader } = member;
        if self.options.format.is_none() && detect::by_name(&path).is_none() {
            self.progress.note(ReadNote::UnknownFile);
            return Ok(File::Ended);
        }
        let mut input = Input::of_member(&path, reader, self.options.memory_of_unpacking(), &self.progress)?;
        let head = input.peek(detect::HEAD_BYTES)?;
        let note = match detect::of_unnamed(&path, &head, &self.options) {
            Ok(Some(Format::Documents(format))) => return File::of_input(input, format, &self.options),
            Ok(Some(Format::HexLines | Format::Raw { .. })) => ReadNote::FingerprintFile,
            Ok(None) => ReadNote::OtherJson,
            Err(reason) => return Err(input.bad_file(&reason)),
        };
        self.progress.note(note);
        Ok(File::Ended)
    }
}
