//! Reads fingerprints from files, or from memory.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::inputs::item::Item;
use crate::inputs::memory_fingerprints::MemoryFingerprints;
use simstore::{Error, Fingerprint, Result};
use simstore_io::Encoding;
use simstore_io::MAX_NAME_BYTES;
use simstore_io::bytes::Input;
use simstore_io::bytes::LengthLimit;
use simstore_io::bytes::ReadOnceInputs;
use simstore_io::bytes::encoding;
use simstore_io::document::unescape;
use simstore_io::formats::binary;
use simstore_io::formats::{Format, detect};
use simstore_io::reading::PathExpander;
use simstore_io::{DocumentFormat, DocumentId, ReadProgress};

/// Length of the longest line that is read, in bytes. The limit is much greater than the length of the longest valid name,
/// so that an error message can state the length of a name that is too long.
const MAX_LINE_BYTES: usize = 16 * MAX_NAME_BYTES;

/// Consecutive fingerprints in memory, the position of the first one among the records of all inputs, and the path that
/// messages name.
type MemoryBlock<'a, F> = (&'a [F], u64, &'a Arc<Path>);

/// Number of fingerprints in a block of fingerprints in memory.
const MEMORY_BLOCK_LEN: usize = 1 << 16;

/// Returns the fingerprints of files, in order.
///
/// Files named `.u64` or `.u128` hold raw little-endian values. All other files hold lines `HEX` or `HEX<TAB>ID`. `HEX` has
/// 16 or 32 hexadecimal digits. An ID that is a decimal `u64` is a number; any other ID is a name,
/// [escaped](simstore_io::escape). A fingerprint without an ID gets its position among all inputs, from 0; malformed records
/// count too. [Checksums](Item::checksum) are 0: see [`Item::checksum_of_fingerprint`].
///
/// # Errors
/// An item is [`Error::BadInput`] in these cases:
/// - A line is malformed. The iteration then continues with the next line.
/// - The size of a raw file is not a multiple of the width, or a file cannot be opened or read to its end. The iteration
///   then continues with the next file.
///
/// The iteration ends with [`Error::Io`] if a file does not exist. It ends with [`Error::BadArgument`] if a raw file has
/// another width than `F`, or if the name of a file says that it holds documents.
pub fn fingerprints<F: Fingerprint>(paths: &[PathBuf]) -> FingerprintIter<F> {
    FingerprintIter::new(paths, &Arc::default(), None)
}

/// Iterator over the fingerprints of files. See [`fingerprints`](fn@fingerprints).
#[derive(Debug)]
pub struct FingerprintIter<F> {
    named: PathExpander,
    progress: Arc<ReadProgress>,
    read_once: Arc<ReadOnceInputs>,
    /// Fingerprints in memory, instead of files.
    in_memory: Option<MemoryFingerprints>,
    /// Path and reader of the current file, and whether the file holds raw little-endian values instead of lines.
    input: Option<(Arc<Path>, Input, bool)>,
    /// Number of records read so far from all inputs, including malformed records.
    position: u64,
    failed: bool,
    width: PhantomData<F>,
}

impl<F: Fingerprint> FingerprintIter<F> {
    pub(crate) fn new(
        paths: &[PathBuf],
        read_once: &Arc<ReadOnceInputs>,
        in_memory: Option<MemoryFingerprints>,
    ) -> Self {
        let progress = Arc::default();
        FingerprintIter {
            // Input folders are for documents only.
            named: PathExpander::new(paths, false, &progress, read_once),
            progress,
            read_once: Arc::clone(read_once),
            in_memory,
            input: None,
            position: 0,
            failed: false,
            width: PhantomData,
        }
    }

    /// Counters of the bytes read and of skipped files, updated while the iterator reads.
    pub fn progress(&self) -> Arc<ReadProgress> {
        Arc::clone(&self.progress)
    }

    /// Returns the current file, and the number of the last record read from it, counted from 1. A record is a line, or a
    /// fingerprint of a raw file. `None` if no file is open.
    pub fn location(&self) -> Option<(&Arc<Path>, u64)> {
        self.input.as_ref().map(|(path, input, _)| (path, input.line()))
    }

    /// Returns the next block of fingerprints in memory, with the position of the first one, and with the path that messages
    /// name. `None` after the last fingerprint in memory. Also `None` if the fingerprints have ids, which a block cannot hold.
    pub(crate) fn next_memory_block(&mut self) -> Result<Option<MemoryBlock<'_, F>>> {
        let Some(in_memory) = &self.in_memory else { return Ok(None) };
        let (in_memory, position) = (in_memory.get::<F>()?, self.position as usize);
        let end = in_memory.fingerprints.len().min(position + MEMORY_BLOCK_LEN);
        if in_memory.ids.is_some() || position >= end {
            return Ok(None);
        }
        self.position = end as u64;
        Ok(Some((&in_memory.fingerprints[position..end], position as u64, &in_memory.path)))
    }

    /// Returns the next fingerprint in memory; `None` if no fingerprints in memory remain.
    fn next_in_memory(&mut self) -> Result<Option<Item<F>>> {
        let Some(in_memory) = &self.in_memory else { return Ok(None) };
        let (in_memory, at) = (in_memory.get::<F>()?, self.position as usize);
        let Some(&fingerprint) = in_memory.fingerprints.get(at) else { return Ok(None) };
        self.position += 1;
        let id = in_memory.ids.as_ref().map(|ids| ids[at].clone());
        let path = Arc::clone(&in_memory.path);
        Ok(Some(Item::from_fingerprint(at as u64, fingerprint, id, path, self.position)))
    }

    /// Appends the next fingerprints of a raw file to `fingerprints`, which is much faster than reading them one by one.
    /// Their ids are their positions. Returns the number of appended fingerprints. After a return value of 0, call `next`,
    /// because more records may follow, such as those in the next file.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.u64");
    /// std::fs::write(&path, 7_u64.to_le_bytes().repeat(1000)).unwrap();
    /// let mut records = simstore_corpus::fingerprints::<u64>(&[path]);
    /// let mut all = Vec::new();
    /// loop {
    ///     if records.read_block(&mut all)? > 0 {
    ///         continue;
    ///     }
    ///     let Some(record) = records.next() else { break };
    ///     all.extend(record?.fingerprint);
    /// }
    /// assert_eq!(all, [7; 1000]);
    /// # Ok::<(), simstore::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadInput`] if the file cannot be read to its end. The next call continues with the next file.
    pub fn read_block(&mut self, fingerprints: &mut Vec<F>) -> Result<u64> {
        let Some((_, input, true)) = &mut self.input else { return Ok(0) };
        if self.failed {
            return Ok(0);
        }
        let read = input.visit_buffered(F::BYTES, |bytes| {
            fingerprints.extend(bytes.chunks_exact(F::BYTES).map(F::read_le));
        });
        // A malformed record has a position too.
        self.position += read.as_ref().map_or(1, |&count| count);
        read
    }

    fn read_next(&mut self) -> Result<Option<Item<F>>> {
        if self.in_memory.is_some() {
            return self.next_in_memory();
        }
        loop {
            if let Some((path, input, is_raw)) = &mut self.input {
                let read = if *is_raw {
                    let mut record = [0; size_of::<u128>()];
                    let record = &mut record[..F::BYTES];
                    input.read_record(record).map(|is_there| is_there.then(|| Ok((F::read_le(record), None))))
                } else {
                    let line = input.read_line(LengthLimit::fixed(MAX_LINE_BYTES));
                    line.map(|line| line.map(|line| parse_line(&line)))
                };
                // A malformed record has a position too.
                if !matches!(read, Ok(None)) {
                    self.position += 1;
                }
                if let Some(parsed) = read? {
                    let (position, path, line) = (self.position - 1, Arc::clone(path), input.line());
                    return match parsed {
                        Ok((fingerprint, id)) => {
                            Ok(Some(Item::from_fingerprint(position, fingerprint, id, path, line)))
                        }
                        Err(reason) => Err(input.line_error(reason)),
                    };
                }
            }
            if self.input.take().is_some() {
                self.progress.add_file();
            }
            let Some((path, _)) = self.named.next_file()? else { return Ok(None) };
            let is_raw = match detect::format_from_name(&path) {
                Some(Format::Raw { bits }) if bits != F::BITS => {
                    return Err(Error::BadArgument(format!(
                        "{}: holds {bits}-bit fingerprints, not {}-bit ones",
                        path.display(),
                        F::BITS
                    )));
                }
                Some(Format::Raw { .. }) => true,
                Some(Format::HexLines | Format::Documents(DocumentFormat::Tsv)) | None => false,
                Some(Format::Documents(_)) => {
                    return Err(Error::BadArgument(format!(
                        "{}: has documents, not fingerprints",
                        path.display()
                    )));
                }
            };
            let input = open(&path, is_raw, &self.progress, &self.read_once);
            let input = input.inspect_err(|_| self.progress.add_file())?;
            self.input = Some((path.into(), input, is_raw));
        }
    }
}

fn open(
    path: &Path,
    is_raw: bool,
    progress: &Arc<ReadProgress>,
    read_once: &ReadOnceInputs,
) -> Result<Input> {
    let mut input =
        Input::open(path, detect::detect_compression(path, read_once)?, None, progress, read_once)?;
    if is_raw {
        return Ok(input);
    }
    // Looks only at bytes that are available, because a pipe may deliver one line at a time.
    let head = input.fill()?;
    let head = &head[..head.len().min(detect::HEAD_BYTES)];
    if encoding::utf16_head_to_utf8(head).is_none()
        && let Some(reason) = binary::refusal(head, false)
    {
        return Err(input.file_error(&reason));
    }
    // Hexadecimal digits make UTF-16 unambiguous. Other lines that are not UTF-8 are reported one by one.
    let encoding = encoding::detect_unmarked_utf16(head).unwrap_or(Encoding::UTF_8);
    input.into_lines(encoding)
}

/// Parses a line `HEX` or `HEX<TAB>ID`. Fails with a message if the line is malformed.
fn parse_line<F: Fingerprint>(line: &[u8]) -> Result<(F, Option<DocumentId>), String> {
    let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line))
        .map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to() + 1))?;
    let (hex, id) = match line.split_once('\t') {
        Some((hex, "")) => (hex, Err("no id after the tab".to_owned())),
        Some((_, id)) if id.contains('\t') => return Err("more than two columns".to_owned()),
        Some((hex, id)) => (hex, unescape(id).and_then(|id| DocumentId::from_text(&id)).map(Some)),
        None => (line, Ok(None)),
    };
    let fingerprint = F::parse_hex(hex.trim()).map_err(|error| error.to_string())?;
    Ok((fingerprint, id?))
}

impl<F: Fingerprint> Iterator for FingerprintIter<F> {
    type Item = Result<Item<F>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.read_next();
        self.failed = matches!(&record, Err(error) if !matches!(error, Error::BadInput { .. }));
        record.transpose()
    }
}
