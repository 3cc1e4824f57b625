//! Reads the members of tar and zip archives one after the other. Members are never written to disk.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bzip2::bufread::BzDecoder;
use flate2::bufread::DeflateDecoder;
use tar::{Header, PaxExtensions};
use zip::{CompressionMethod, ZipArchive};

use crate::bytes::compression::Compression;
use crate::bytes::encoding::{self, Encoding};
use crate::bytes::input::Input;
use crate::bytes::open_errors::cannot_open;
use crate::read_progress::{CountingReader, ReadDiagnostic, ReadProgress};
use simstore::{Error, Result};

/// Size of a block in a tar file, in bytes.
const TAR_BLOCK_BYTES: usize = 512;
/// Maximum size in bytes of a long name, or of the extended attributes, of a tar member.
const MAX_ATTRIBUTE_BYTES: u64 = 1 << 20;

/// Whether a file begins with a zip member, or with the end record of an empty zip archive.
pub(crate) fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

/// Whether a file begins with a block that has the checksum of a tar header.
pub(crate) fn is_tar(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|block| parse_tar_header(block).is_some())
}

fn parse_tar_header(block: &[u8; TAR_BLOCK_BYTES]) -> Option<Header> {
    let mut header = Header::new_old();
    header.as_mut_bytes().copy_from_slice(block);
    // The checksum is computed as if its own field contained blanks.
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    let field: u32 = block[148..156].iter().map(|&byte| u32::from(byte)).sum();
    (block[0] != 0 && header.cksum().is_ok_and(|found| found == sum - field + 8 * u32::from(b' ')))
        .then_some(header)
}

/// An open tar or zip archive, whose members are read one after the other.
pub(crate) struct Archive {
    path: PathBuf,
    progress: Arc<ReadProgress>,
    /// Limit in bytes on the memory to decompress a member; `None` for no limit.
    memory: Option<u64>,
    state: ArchiveState,
}

enum ArchiveState {
    Tar(Arc<Mutex<TarStream>>),
    /// The open zip file with its list of members, and the index of the next member.
    Zip(Box<ZipArchive<BufReader<File>>>, usize),
    Ended,
}

/// A file in an archive. Hidden files, which have a path component that begins with a dot, are not returned.
pub(crate) struct ArchiveMember {
    /// Path of the archive, followed by the path of the member in it.
    pub path: PathBuf,
    pub(crate) reader: Box<dyn Read + Send>,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Archive {
    /// Opens an archive. Its first bytes decide whether it is a tar or a zip file.
    ///
    /// # Errors
    /// [`Error::BadInput`] for other files, damaged archives, and office documents, which are archives too;
    /// [`Error::BadArgument`] for a zip file in a pipe.
    pub(crate) fn open(
        mut input: Input,
        memory: Option<u64>,
        progress: &Arc<ReadProgress>,
    ) -> Result<Archive> {
        let path = input.path().to_path_buf();
        let head = input.peek(TAR_BLOCK_BYTES)?;
        let state = if is_zip(&head) {
            ArchiveState::Zip(Box::new(open_zip(&input)?), 0)
        } else if is_tar(&head) || head.iter().all(|&byte| byte == 0) && !head.is_empty() {
            ArchiveState::Tar(Arc::new(Mutex::new(TarStream {
                reader: input.into_reader(),
                left: 0,
                padding: 0,
                failed: false,
            })))
        } else {
            let reason = "neither a tar nor a zip file, or damaged at its start".to_owned();
            return Err(Error::BadInput { path, line: 0, reason });
        };
        Ok(Archive { path, progress: Arc::clone(progress), memory, state })
    }

    /// Returns the next member that is a file and not hidden; `None` at the end of the archive. Links are skipped, and
    /// counted as [`ArchiveLink`](ReadDiagnostic::ArchiveLink).
    ///
    /// # Errors
    /// [`Error::BadInput`] for an unreadable member; the next call returns the next member. [`Error::BadInput`]
    /// also for a damaged or truncated archive; the next call returns `None`.
    pub(crate) fn next(&mut self) -> Result<Option<ArchiveMember>> {
        loop {
            let (name, reader) = match &mut self.state {
                ArchiveState::Tar(stream) => match TarStream::next(stream) {
                    Ok(Some(found)) => found,
                    Ok(None) => {
                        self.state = ArchiveState::Ended;
                        return Ok(None);
                    }
                    Err(reason) => {
                        self.state = ArchiveState::Ended;
                        let reason = format!("{reason}; the rest of the archive is skipped");
                        return Err(Error::BadInput { path: self.path.clone(), line: 0, reason });
                    }
                },
                ArchiveState::Zip(archive, next) => {
                    if *next == archive.len() {
                        self.state = ArchiveState::Ended;
                        return Ok(None);
                    }
                    *next += 1;
                    let Some((name, reader)) =
                        zip_member(archive, *next - 1, &self.path, self.memory, &self.progress)
                    else {
                        continue;
                    };
                    match reader {
                        Ok(reader) => (name, reader),
                        Err(MemberError::Reopen(error)) => return Err(cannot_open(&self.path)(error)),
                        Err(MemberError::Damaged(reason)) if is_visible(&name) => {
                            let path = self.path.join(name);
                            return Err(Error::BadInput { path, line: 0, reason });
                        }
                        Err(MemberError::Damaged(_)) => continue,
                    }
                }
                ArchiveState::Ended => return Ok(None),
            };
            if is_visible(&name) {
                match reader {
                    Some(reader) => return Ok(Some(ArchiveMember { path: self.path.join(name), reader })),
                    None => self.progress.add_diagnostic(ReadDiagnostic::ArchiveLink),
                }
            }
        }
    }
}

/// Decodes the path of a member, whose encoding is detected. Removes components that lead out of the archive, such as
/// `..`.
fn decode_member_path(name: &[u8]) -> PathBuf {
    let ((name, _), _) = encoding::decode_text(name, Encoding::AUTO, None);
    let is_normal = |component: &Component<'_>| matches!(component, Component::Normal(_));
    Path::new(&*name).components().filter(is_normal).collect()
}

fn is_visible(name: &Path) -> bool {
    name.iter().all(|part| !part.as_encoded_bytes().starts_with(b"."))
}

/// The bytes of a tar file, shared by the readers of its members.
struct TarStream {
    reader: Box<dyn Read + Send>,
    /// Number of unread bytes in the current member.
    left: u64,
    /// Number of padding bytes after the current member.
    padding: u64,
    failed: bool,
}

/// Reader of the current tar member.
struct TarMemberReader(Arc<Mutex<TarStream>>);

impl Read for TarMemberReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = buffer.len().min(usize::try_from(stream.left).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        if stream.failed {
            return Err(io::Error::other("the rest of the archive cannot be read"));
        }
        let read = stream.reader.read(&mut buffer[..wanted]);
        match &read {
            Ok(0) => {
                stream.failed = true;
                return Err(io::Error::other("the archive ends within this member"));
            }
            Ok(read) => stream.left -= *read as u64,
            Err(_) => stream.failed = true,
        }
        read
    }
}

/// Path of a tar member, and the reader of the member's content; `None` for a link.
type TarEntry = (PathBuf, Option<Box<dyn Read + Send>>);

impl TarStream {
    /// Moves to the next member that is a file or a link; returns `None` at the end of the archive. Returns the reason
    /// if the archive is damaged or truncated.
    fn next(shared: &Arc<Mutex<TarStream>>) -> Result<Option<TarEntry>, String> {
        let mut stream = shared.lock().unwrap_or_else(PoisonError::into_inner);
        // Values of extension headers, which apply to the header after them.
        let (mut long_name, mut pax_name, mut pax_size) = (None, None, None);
        loop {
            stream.skip()?;
            let Some(header) = stream.header()? else { return Ok(None) };
            let kind = header.entry_type();
            let size = pax_size.take().map_or_else(|| header.entry_size(), Ok);
            let size = size.map_err(|error| format!("a header of a member is damaged: {error}"))?;
            stream.left = size;
            stream.padding =
                (TAR_BLOCK_BYTES as u64 - size % TAR_BLOCK_BYTES as u64) % TAR_BLOCK_BYTES as u64;
            if kind.is_gnu_longname() {
                let name = stream.attributes()?;
                long_name = Some(name.split(|&byte| byte == 0).next().unwrap_or_default().to_vec());
            } else if kind.is_pax_local_extensions() {
                let attributes = stream.attributes()?;
                for attribute in PaxExtensions::new(&attributes) {
                    let attribute = attribute.map_err(|error| format!("attributes are damaged: {error}"))?;
                    match attribute.key_bytes() {
                        b"path" => pax_name = Some(attribute.value_bytes().to_vec()),
                        b"size" => pax_size = attribute.value().ok().and_then(|size| size.parse().ok()),
                        key if key.starts_with(b"GNU.sparse.") => return Err(SPARSE_REASON.to_owned()),
                        _ => {}
                    }
                }
            } else if kind.is_gnu_sparse() {
                return Err(SPARSE_REASON.to_owned());
            } else if kind.is_gnu_longlink() || kind.is_pax_global_extensions() {
            } else {
                let name = pax_name.take().or_else(|| long_name.take());
                let name = name.unwrap_or_else(|| header.path_bytes().into_owned());
                (long_name, pax_name) = (None, None);
                // In very old archives, a folder is a file whose name ends in a slash.
                if (kind.is_file() || kind.is_contiguous()) && !name.ends_with(b"/") {
                    let reader = Box::new(TarMemberReader(Arc::clone(shared)));
                    return Ok(Some((decode_member_path(&name), Some(reader))));
                }
                if kind.is_symlink() || kind.is_hard_link() {
                    return Ok(Some((decode_member_path(&name), None)));
                }
            }
        }
    }

    /// Reads the next header; `None` at the end of the archive.
    fn header(&mut self) -> Result<Option<Header>, String> {
        let mut block = [0; TAR_BLOCK_BYTES];
        let mut filled = 0;
        while filled < TAR_BLOCK_BYTES {
            match self.reader.read(&mut block[filled..]).map_err(|error| self.cannot_read(&error))? {
                0 if filled == 0 => return Ok(None),
                0 => return Err("the archive is truncated in a header".to_owned()),
                read => filled += read,
            }
        }
        if block.iter().all(|&byte| byte == 0) {
            // Read to the end, where the compression may have a checksum of the whole archive.
            io::copy(&mut self.reader, &mut io::sink()).map_err(|error| self.cannot_read(&error))?;
            return Ok(None);
        }
        parse_tar_header(&block).map(Some).ok_or_else(|| "a header of a member is damaged".to_owned())
    }

    /// Skips the rest of the current member and the padding after it.
    fn skip(&mut self) -> Result<(), String> {
        if self.failed {
            return Err("the rest of the archive cannot be read".to_owned());
        }
        let rest = self.left + self.padding;
        let skipped = io::copy(&mut (&mut self.reader).take(rest), &mut io::sink());
        let is_truncated = skipped.map_err(|error| self.cannot_read(&error))? < self.left;
        (self.left, self.padding) = (0, 0);
        if is_truncated { Err("the archive ends within a member".to_owned()) } else { Ok(()) }
    }

    fn attributes(&mut self) -> Result<Vec<u8>, String> {
        if self.left > MAX_ATTRIBUTE_BYTES {
            return Err(format!("attributes of {} bytes", self.left));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(self.left).read_to_end(&mut bytes);
        self.left -= read.map_err(|error| self.cannot_read(&error))? as u64;
        Ok(bytes)
    }

    fn cannot_read(&mut self, error: &io::Error) -> String {
        self.failed = true;
        format!("cannot read: {error}")
    }
}

const SPARSE_REASON: &str =
    "a member with holes (a sparse file), which is not supported: unpack the archive first";

fn open_zip(input: &Input) -> Result<ZipArchive<BufReader<File>>> {
    let path = input.path();
    if input.is_compressed() {
        return Err(input.line_error("a zip file that is compressed once more; unpack it first".to_owned()));
    }
    if crate::bytes::read_once::is_read_once(path)? {
        return Err(Error::BadArgument(format!(
            "{}: a zip file cannot be read from a pipe; save it as a file first",
            path.display()
        )));
    }
    let bad = |reason: String| Error::BadInput { path: path.to_path_buf(), line: 0, reason };
    let file = File::open(path).map_err(cannot_open(path))?;
    let archive = ZipArchive::new(BufReader::new(file))
        .map_err(|error| bad(format!("damaged or truncated zip file: {error}")))?;
    if let Some(what) = office_document(&archive) {
        return Err(bad(format!("looks like {what}")));
    }
    // If the directory is truncated, the directory of an inner archive may have been found instead.
    if archive.offset() > 0 {
        return Err(bad(format!(
            "damaged or truncated zip file: {} bytes before its first listed member",
            archive.offset()
        )));
    }
    if archive.has_duplicate_names() {
        return Err(bad("two members have the same name: unpack the archive first".to_owned()));
    }
    Ok(archive)
}

/// Returns the kind of office document that a zip file is, with advice; `None` for other archives.
fn office_document(archive: &ZipArchive<BufReader<File>>) -> Option<&'static str> {
    let has = |start: &[u8]| archive.file_names_raw().any(|name| name.starts_with(start));
    if has(b"[Content_Types].xml") {
        return Some(match () {
            () if has(b"xl/") => "a spreadsheet (.xlsx), which is not supported: save its sheets as .csv",
            () if has(b"word/") => {
                "a Word document (.docx), which is not supported: save its text as .txt or .html"
            }
            () if has(b"ppt/") => {
                "a presentation (.pptx), which is not supported: save its text as .txt or .html"
            }
            () => "an Office document, which is not supported: save its text as .txt or .html",
        });
    }
    let is_document = has(b"mimetype") && (has(b"content.xml") || has(b"META-INF/container.xml"));
    is_document.then_some("an OpenDocument file or a book (.odt, .ods, .epub), which is not supported: save its text as .txt or .csv")
}

/// Path of a zip member, and the reader of the member's content; `None` for a link.
type ZipEntry = (PathBuf, Result<Option<Box<dyn Read + Send>>, MemberError>);

/// Reason why a zip member cannot be read.
enum MemberError {
    /// The archive could not be opened once more for this member. Each member is read through its own file handle.
    Reopen(io::Error),
    Damaged(String),
}

/// Opens the member with index `at` of a zip file. Returns `None` if the member is a folder.
fn zip_member(
    archive: &mut ZipArchive<BufReader<File>>,
    at: usize,
    path: &Path,
    memory: Option<u64>,
    progress: &Arc<ReadProgress>,
) -> Option<ZipEntry> {
    let damaged = |error: &dyn std::fmt::Display| {
        MemberError::Damaged(format!("cannot be found in the archive: {error}"))
    };
    let member = match archive.by_index_raw(at) {
        Ok(member) => member,
        Err(error) => return Some((PathBuf::from(format!("member {}", at + 1)), Err(damaged(&error)))),
    };
    if member.is_dir() {
        return None;
    }
    let name = decode_member_path(member.name_raw());
    if member.is_symlink() {
        return Some((name, Ok(None)));
    }
    let reader = || {
        if member.encrypted() {
            return Err(MemberError::Damaged(
                "is encrypted, and cannot be read: unpack the archive first".to_owned(),
            ));
        }
        let start = member.data_start().ok_or_else(|| damaged(&"no place"))?;
        let mut file = File::open(path).map_err(MemberError::Reopen)?;
        file.seek(SeekFrom::Start(start)).map_err(|error| damaged(&error))?;
        let raw = BufReader::new(CountingReader::new(file, progress).take(member.compressed_size()));
        let reader: Box<dyn Read + Send> = match member.compression() {
            CompressionMethod::STORE => Box::new(raw),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(raw)),
            CompressionMethod::BZIP2 => Box::new(BzDecoder::new(raw)),
            CompressionMethod::XZ => Compression::Xz.reader(raw, memory).map_err(|error| damaged(&error))?,
            CompressionMethod::ZSTD => {
                Compression::Zstd.reader(raw, memory).map_err(|error| damaged(&error))?
            }
            other => {
                return Err(MemberError::Damaged(format!(
                    "is compressed by {other}, which is not supported: unpack the archive first"
                )));
            }
        };
        let hash = crc32fast::Hasher::new();
        let reader: Box<dyn Read + Send> =
            Box::new(ChecksumReader { reader, hash, expected: member.crc32() });
        Ok(Some(reader))
    };
    Some((name, reader()))
}

/// A reader that returns an error at the end of the data if their CRC-32 is not the expected one.
struct ChecksumReader {
    reader: Box<dyn Read + Send>,
    hash: crc32fast::Hasher,
    expected: u32,
}

impl Read for ChecksumReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.hash.update(&buffer[..read]);
        if read == 0 && !buffer.is_empty() && self.hash.clone().finalize() != self.expected {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "wrong checksum of this member"));
        }
        Ok(read)
    }
}
