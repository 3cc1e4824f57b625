//! Archives, tar and zip: their members, one after the other. None is ever written to disk.

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
use crate::progress::{Counted, ReadNote, ReadProgress};
use simstore::{Error, Result};

/// The unit of a tar file.
const BLOCK: usize = 512;
/// The longest name, or list of attributes, of a member of a tar file.
const ATTRIBUTE_BYTES: u64 = 1 << 20;

/// Whether a file begins as a zip file does: with a member, or with the end of one without members.
pub(crate) fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

/// Whether a file begins as a tar file does: with a block that has the checksum of a header.
pub(crate) fn is_tar(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|block| header_of(block).is_some())
}

fn header_of(block: &[u8; BLOCK]) -> Option<Header> {
    let mut header = Header::new_old();
    header.as_mut_bytes().copy_from_slice(block);
    // The checksum itself counts as blanks.
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    let field: u32 = block[148..156].iter().map(|&byte| u32::from(byte)).sum();
    (block[0] != 0 && header.cksum().is_ok_and(|found| found == sum - field + 8 * u32::from(b' ')))
        .then_some(header)
}

/// An open archive.
pub(crate) struct Archive {
    path: PathBuf,
    progress: Arc<ReadProgress>,
    /// The most that unpacking a member may take.
    memory: Option<u64>,
    form: Form,
}

enum Form {
    Tar(Arc<Mutex<TarStream>>),
    /// The directory, and the place of the next member in it.
    Zip(Box<ZipArchive<BufReader<File>>>, usize),
    Ended,
}

/// A file in an archive that is not hidden.
pub(crate) struct Member {
    /// The path of the archive, followed by the path of the member in it.
    pub path: PathBuf,
    pub(crate) reader: Box<dyn Read + Send>,
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Archive {
    /// Opens an archive, whose first bytes tell which of the two it is.
    ///
    /// # Errors
    /// [`Error::BadInput`] for other files, damaged archives, and documents of other programs that are archives;
    /// [`Error::BadArgument`] for a zip file in a pipe.
    pub(crate) fn open(
        mut input: Input,
        memory: Option<u64>,
        progress: &Arc<ReadProgress>,
    ) -> Result<Archive> {
        let path = input.path().to_path_buf();
        let head = input.peek(BLOCK)?;
        let form = if is_zip(&head) {
            Form::Zip(Box::new(open_zip(&input)?), 0)
        } else if is_tar(&head) || head.iter().all(|&byte| byte == 0) && !head.is_empty() {
            Form::Tar(Arc::new(Mutex::new(TarStream {
                reader: input.into_reader(),
                left: 0,
                padding: 0,
                failed: false,
            })))
        } else {
            let reason = "neither a tar nor a zip file, or damaged at its start".to_owned();
            return Err(Error::BadInput { path, line: 0, reason });
        };
        Ok(Archive { path, progress: Arc::clone(progress), memory, form })
    }

    /// The next member that is a file and not hidden. Links before it are counted.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a member that cannot be read, after which the next follows, and where the archive is
    /// damaged or cut off, after which there is nothing more.
    pub(crate) fn next(&mut self) -> Result<Option<Member>> {
        loop {
            let (name, reader) = match &mut self.form {
                Form::Tar(stream) => match TarStream::next(stream) {
                    Ok(Some(found)) => found,
                    Ok(None) => {
                        self.form = Form::Ended;
                        return Ok(None);
                    }
                    Err(reason) => {
                        self.form = Form::Ended;
                        let reason = format!("{reason}; the rest of the archive is skipped");
                        return Err(Error::BadInput { path: self.path.clone(), line: 0, reason });
                    }
                },
                Form::Zip(archive, next) => {
                    if *next == archive.len() {
                        self.form = Form::Ended;
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
                        Err(Unread::NoFile(error)) => return Err(cannot_open(&self.path)(error)),
                        Err(Unread::Damaged(reason)) if is_shown(&name) => {
                            let path = self.path.join(name);
                            return Err(Error::BadInput { path, line: 0, reason });
                        }
                        Err(Unread::Damaged(_)) => continue,
                    }
                }
                Form::Ended => return Ok(None),
            };
            if is_shown(&name) {
                match reader {
                    Some(reader) => return Ok(Some(Member { path: self.path.join(name), reader })),
                    None => self.progress.note(ReadNote::Link),
                }
            }
        }
    }
}

/// Decodes the path of a member, in any encoding, without parts that lead out of the archive.
fn path_of(name: &[u8]) -> PathBuf {
    let ((name, _), _) = encoding::decode_text(name, Encoding::AUTO, None);
    let is_normal = |component: &Component<'_>| matches!(component, Component::Normal(_));
    Path::new(&*name).components().filter(is_normal).collect()
}

fn is_shown(name: &Path) -> bool {
    name.iter().all(|part| !part.as_encoded_bytes().starts_with(b"."))
}

/// The bytes of a tar file. Its members read their parts one after the other.
struct TarStream {
    reader: Box<dyn Read + Send>,
    /// Bytes of the member that are not yet read, and of the blanks behind it.
    left: u64,
    padding: u64,
    failed: bool,
}

/// A member that is being read.
struct TarMember(Arc<Mutex<TarStream>>);

impl Read for TarMember {
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

/// A member and its reader; a link has none.
type TarFound = (PathBuf, Option<Box<dyn Read + Send>>);

impl TarStream {
    /// Goes to the next member that is a file or a link; a reason if the archive is cut off.
    fn next(shared: &Arc<Mutex<TarStream>>) -> Result<Option<TarFound>, String> {
        let mut stream = shared.lock().unwrap_or_else(PoisonError::into_inner);
        // Fields of extension headers, for the header after them.
        let (mut long_name, mut pax_name, mut pax_size) = (None, None, None);
        loop {
            stream.skip()?;
            let Some(header) = stream.header()? else { return Ok(None) };
            let kind = header.entry_type();
            let size = pax_size.take().map_or_else(|| header.entry_size(), Ok);
            let size = size.map_err(|error| format!("a header of a member is damaged: {error}"))?;
            stream.left = size;
            stream.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
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
                        key if key.starts_with(b"GNU.sparse.") => return Err(SPARSE.to_owned()),
                        _ => {}
                    }
                }
            } else if kind.is_gnu_sparse() {
                return Err(SPARSE.to_owned());
            } else if kind.is_gnu_longlink() || kind.is_pax_global_extensions() {
            } else {
                let name = pax_name.take().or_else(|| long_name.take());
                let name = name.unwrap_or_else(|| header.path_bytes().into_owned());
                (long_name, pax_name) = (None, None);
                // Very old ones call a folder a file whose name ends so.
                if (kind.is_file() || kind.is_contiguous()) && !name.ends_with(b"/") {
                    let reader = Box::new(TarMember(Arc::clone(shared)));
                    return Ok(Some((path_of(&name), Some(reader))));
                }
                if kind.is_symlink() || kind.is_hard_link() {
                    return Ok(Some((path_of(&name), None)));
                }
            }
        }
    }

    /// The next header; `None` at the end of the archive.
    fn header(&mut self) -> Result<Option<Header>, String> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.reader.read(&mut block[filled..]).map_err(|error| self.cannot_read(&error))? {
                0 if filled == 0 => return Ok(None),
                0 => return Err("the archive is truncated in a header".to_owned()),
                read => filled += read,
            }
        }
        if block.iter().all(|&byte| byte == 0) {
            // A compression may have a checksum of the whole archive at its end.
            io::copy(&mut self.reader, &mut io::sink()).map_err(|error| self.cannot_read(&error))?;
            return Ok(None);
        }
        header_of(&block).map(Some).ok_or_else(|| "a header of a member is damaged".to_owned())
    }

    /// Skips what is left of a member.
    fn skip(&mut self) -> Result<(), String> {
        if self.failed {
            return Err("the rest of the archive cannot be read".to_owned());
        }
        let rest = self.left + self.padding;
        let skipped = io::copy(&mut (&mut self.reader).take(rest), &mut io::sink());
        let is_cut = skipped.map_err(|error| self.cannot_read(&error))? < self.left;
        (self.left, self.padding) = (0, 0);
        if is_cut { Err("the archive ends within a member".to_owned()) } else { Ok(()) }
    }

    fn attributes(&mut self) -> Result<Vec<u8>, String> {
        if self.left > ATTRIBUTE_BYTES {
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

const SPARSE: &str = "a member with holes (a sparse file), which is not supported: unpack the archive first";

fn open_zip(input: &Input) -> Result<ZipArchive<BufReader<File>>> {
    let path = input.path();
    if input.is_packed() {
        return Err(input.bad("a zip file that is compressed once more; unpack it first".to_owned()));
    }
    if crate::bytes::pipes::is_read_once(path)? {
        return Err(Error::BadArgument(format!(
            "{}: a zip file cannot be read from a pipe; save it as a file first",
            path.display()
        )));
    }
    let bad = |reason: String| Error::BadInput { path: path.to_path_buf(), line: 0, reason };
    let file = File::open(path).map_err(cannot_open(path))?;
    let archive = ZipArchive::new(BufReader::new(file))
        .map_err(|error| bad(format!("damaged or truncated zip file: {error}")))?;
    if let Some(what) = document_of(&archive) {
        return Err(bad(format!("looks like {what}")));
    }
    // If the directory is cut off, the directory of an archive within this one may be found.
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

/// Names the office document that a zip file is, with advice.
fn document_of(archive: &ZipArchive<BufReader<File>>) -> Option<&'static str> {
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

type ZipFound = (PathBuf, Result<Option<Box<dyn Read + Send>>, Unread>);

/// Why a member has no reader.
enum Unread {
    /// The archive cannot be opened once more.
    NoFile(io::Error),
    Damaged(String),
}

/// A member of a zip file, and its reader or why there is none; a link has none, and a folder is `None`.
fn zip_member(
    archive: &mut ZipArchive<BufReader<File>>,
    at: usize,
    path: &Path,
    memory: Option<u64>,
    progress: &Arc<ReadProgress>,
) -> Option<ZipFound> {
    let damaged =
        |error: &dyn std::fmt::Display| Unread::Damaged(format!("cannot be found in the archive: {error}"));
    let member = match archive.by_index_raw(at) {
        Ok(member) => member,
        Err(error) => return Some((PathBuf::from(format!("member {}", at + 1)), Err(damaged(&error)))),
    };
    if member.is_dir() {
        return None;
    }
    let name = path_of(member.name_raw());
    if member.is_symlink() {
        return Some((name, Ok(None)));
    }
    let reader = || {
        if member.encrypted() {
            return Err(Unread::Damaged(
                "is encrypted, and cannot be read: unpack the archive first".to_owned(),
            ));
        }
        let start = member.data_start().ok_or_else(|| damaged(&"no place"))?;
        let mut file = File::open(path).map_err(Unread::NoFile)?;
        file.seek(SeekFrom::Start(start)).map_err(|error| damaged(&error))?;
        let raw = BufReader::new(Counted::new(file, progress).take(member.compressed_size()));
        let reader: Box<dyn Read + Send> = match member.compression() {
            CompressionMethod::STORE => Box::new(raw),
            CompressionMethod::DEFLATE => Box::new(DeflateDecoder::new(raw)),
            CompressionMethod::BZIP2 => Box::new(BzDecoder::new(raw)),
            CompressionMethod::XZ => Compression::Xz.reader(raw, memory).map_err(|error| damaged(&error))?,
            CompressionMethod::ZSTD => {
                Compression::Zstd.reader(raw, memory).map_err(|error| damaged(&error))?
            }
            other => {
                return Err(Unread::Damaged(format!(
                    "is compressed by {other}, which is not supported: unpack the archive first"
                )));
            }
        };
        let hash = crc32fast::Hasher::new();
        let reader: Box<dyn Read + Send> = Box::new(Checked { reader, hash, expected: member.crc32() });
        Ok(Some(reader))
    };
    Some((name, reader()))
}

/// A reader that compares a checksum at its end.
struct Checked {
    reader: Box<dyn Read + Send>,
    hash: crc32fast::Hasher,
    expected: u32,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.hash.update(&buffer[..read]);
        if read == 0 && !buffer.is_empty() && self.hash.clone().finalize() != self.expected {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "wrong checksum of this member"));
        }
        Ok(read)
    }
}
