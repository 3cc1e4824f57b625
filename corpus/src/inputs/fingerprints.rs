//! Reading fingerprints.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::inputs::in_memory::GivenFingerprints;
use crate::inputs::item::Item;
use simstore::{Error, Fingerprint, Result};
use simstore_io::Encoding;
use simstore_io::MAX_NAME_BYTES;
use simstore_io::bytes::Input;
use simstore_io::bytes::Longest;
use simstore_io::bytes::Pipes;
use simstore_io::bytes::encoding;
use simstore_io::document::unescaped;
use simstore_io::formats::binary;
use simstore_io::formats::{Format, detect};
use simstore_io::reading::Named;
use simstore_io::{DocumentFormat, DocumentId, ReadProgress};

/// The longest line of fingerprints that is read: room for the longest name, and to tell how
/// much too long a longer one is.
const MAX_LINE_BYTES: usize = 16 * MAX_NAME_BYTES;

/// Fingerprints, the position of the first, and the path of their file.
type GivenBlock<'a, F> = (&'a [F], u64, &'a Arc<Path>);

/// Fingerprints in memory that are handed out together.
const GIVEN_BLOCK: usize = 1 << 16;

/// The fingerprints of files, in order.
///
/// Files named `.u64` or `.u128` hold raw little-endian values. All others hold lines `HEX` or
/// `HEX<TAB>ID`: 16 or 32 hexadecimal digits; an ID that is a decimal `u64` is a number, else a
/// name, [escaped](simstore_io::escape). Fingerprints without an ID are numbered from 0 through all inputs; malformed ones have
/// a number too. The [checksums](Item::checksum) are 0: see [`Item::checksum_of_fingerprint`].
///
/// # Errors
/// An item is [`Error::BadInput`] for a malformed line; the next line follows. It is [`Error::BadInput`] too at the end of a
/// raw file whose size is no multiple of the width, and for a file that cannot be opened or read on; the next file follows. The
/// iteration ends with [`Error::Io`] for a missing file. It ends with [`Error::BadArgument`] for a raw file of another width,
/// or a file whose name says that it holds documents.
pub fn fingerprints<F: Fingerprint>(paths: &[PathBuf]) -> Fingerprints<F> {
    Fingerprints::new(paths, &Arc::default(), None)
}

/// An iterator over the fingerprints of files: see [`fingerprints`](fn@fingerprints).
#[derive(Debug)]
pub struct Fingerprints<F> {
    named: Named,
    progress: Arc<ReadProgress>,
    pipes: Arc<Pipes>,
    /// Fingerprints in memory, instead of files.
    given: Option<GivenFingerprints>,
    /// The file that is being read, and whether it is raw.
    input: Option<(Arc<Path>, Input, bool)>,
    /// Records read so far, malformed ones included.
    position: u64,
    failed: bool,
    width: PhantomData<F>,
}

impl<F: Fingerprint> Fingerprints<F> {
    pub(crate) fn new(paths: &[PathBuf], pipes: &Arc<Pipes>, given: Option<GivenFingerprints>) -> Self {
        let progress = Arc::default();
        Fingerprints {
            // Folders hold documents.
            named: Named::new(paths, false, &progress, pipes),
            progress,
            pipes: Arc::clone(pipes),
            given,
            input: None,
            position: 0,
            failed: false,
            width: PhantomData,
        }
    }

    /// How far the reading has come.
    pub fn progress(&self) -> Arc<ReadProgress> {
        Arc::clone(&self.progress)
    }

    /// The file that is being read, and the number of the line or fingerprint there that was read last, from 1.
    pub fn place(&self) -> Option<(&Arc<Path>, u64)> {
        self.input.as_ref().map(|(path, input, _)| (path, input.line()))
    }

    /// Those in memory that have no ids and come next, a block of them, and the position of the first.
    pub(crate) fn given_block(&mut self) -> Result<Option<GivenBlock<'_, F>>> {
        let Some(given) = &self.given else { return Ok(None) };
        let (given, position) = (given.get::<F>()?, self.position as usize);
        let end = given.fingerprints.len().min(position + GIVEN_BLOCK);
        if given.ids.is_some() || position >= end {
            return Ok(None);
        }
        self.position = end as u64;
        Ok(Some((&given.fingerprints[position..end], position as u64, &given.path)))
    }

    /// The next fingerprint in memory.
    fn next_given(&mut self) -> Result<Option<Item<F>>> {
        let Some(given) = &self.given else { return Ok(None) };
        let (given, at) = (given.get::<F>()?, self.position as usize);
        let Some(&fingerprint) = given.fingerprints.get(at) else { return Ok(None) };
        self.position += 1;
        let id = given.ids.as_ref().map(|ids| ids[at].clone());
        let path = Arc::clone(&given.path);
        Ok(Some(Item::of_fingerprint(at as u64, fingerprint, id, path, self.position)))
    }

    /// Appends fingerprints that come next in a raw file, a block of them, which is much faster than one by one;
    /// their ids are their positions. Returns how many: 0 says nothing about what comes next.
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
    /// [`Error::BadInput`] if the file cannot be read on; the next file follows.
    pub fn read_block(&mut self, fingerprints: &mut Vec<F>) -> Result<u64> {
        let Some((_, input, true)) = &mut self.input else { return Ok(0) };
        if self.failed {
            return Ok(0);
        }
        let read = input.visit_buffered(F::BYTES, |bytes| {
            fingerprints.extend(bytes.chunks_exact(F::BYTES).map(F::read_le));
        });
        // A malformed record takes a position too.
        self.position += read.as_ref().map_or(1, |&count| count);
        read
    }

    fn advance(&mut self) -> Result<Option<Item<F>>> {
        if self.given.is_some() {
            return self.next_given();
        }
        loop {
            if let Some((path, input, is_raw)) = &mut self.input {
                let read = if *is_raw {
                    let mut record = [0; size_of::<u128>()];
                    let record = &mut record[..F::BYTES];
                    input.read_record(record).map(|is_there| is_there.then(|| Ok((F::read_le(record), None))))
                } else {
                    let line = input.read_line(Longest::of_format(MAX_LINE_BYTES));
                    line.map(|line| line.map(|line| parse_line(&line)))
                };
                // A malformed record takes a position too.
                if !matches!(read, Ok(None)) {
                    self.position += 1;
                }
                if let Some(parsed) = read? {
                    let (position, path, line) = (self.position - 1, Arc::clone(path), input.line());
                    return match parsed {
                        Ok((fingerprint, id)) => {
                            Ok(Some(Item::of_fingerprint(position, fingerprint, id, path, line)))
                        }
                        Err(reason) => Err(input.bad(reason)),
                    };
                }
            }
            if self.input.take().is_some() {
                self.progress.add_file();
            }
            let Some((path, _)) = self.named.next_file()? else { return Ok(None) };
            let is_raw = match detect::by_name(&path) {
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
            let input = open(&path, is_raw, &self.progress, &self.pipes);
            let input = input.inspect_err(|_| self.progress.add_file())?;
            self.input = Some((path.into(), input, is_raw));
        }
    }
}

fn open(path: &Path, is_raw: bool, progress: &Arc<ReadProgress>, pipes: &Pipes) -> Result<Input> {
    let mut input = Input::open(path, detect::compression(path, pipes)?, None, progress, pipes)?;
    if is_raw {
        return Ok(input);
    }
    // No more than has been given: a pipe may give a line at a time.
    let head = input.fill()?;
    let head = &head[..head.len().min(detect::HEAD_BYTES)];
    if encoding::utf8_head(head).is_none()
        && let Some(reason) = binary::refusal(head, false)
    {
        return Err(input.bad_file(&reason));
    }
    // Hexadecimal digits leave no doubt. Other lines that are not UTF-8 are reported one by one.
    let encoding = encoding::unmarked_utf16(head).unwrap_or(Encoding::UTF_8);
    input.into_lines(encoding)
}

/// Parses `HEX` or `HEX<TAB>ID`; a reason if it is malformed.
fn parse_line<F: Fingerprint>(line: &[u8]) -> Result<(F, Option<DocumentId>), String> {
    let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line))
        .map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to() + 1))?;
    let (hex, id) = match line.split_once('\t') {
        Some((hex, "")) => (hex, Err("no id after the tab".to_owned())),
        Some((_, id)) if id.contains('\t') => return Err("more than two columns".to_owned()),
        Some((hex, id)) => (hex, unescaped(id).and_then(|id| DocumentId::from_text(&id)).map(Some)),
        None => (line, Ok(None)),
    };
    let fingerprint = F::parse_hex(hex.trim()).map_err(|error| error.to_string())?;
    Ok((fingerprint, id?))
}

impl<F: Fingerprint> Iterator for Fingerprints<F> {
    type Item = Result<Item<F>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.advance();
        self.failed = matches!(&record, Err(error) if !matches!(error, Error::BadInput { .. }));
        record.transpose()
    }
}
