//! Compression of stored texts: Zstandard frames with a dictionary that is built from the store's first texts.

use std::io::Read;
use std::sync::OnceLock;

use simstore::{Error, Fingerprint, Result, Snapshot, Store};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{CDict, DDict};

use super::estimate;

/// Prefix of the marks that hold the dictionary. A part number from 0 on follows.
const MARK: &str = "similar texts ";
/// Bytes in each mark and number of marks: a dictionary of 32 KiB. Compared with frames without a dictionary, it saves a quarter to half of
/// the bytes for pages and paragraphs.
const PART: usize = 4096;
const PARTS: usize = 8;
/// Number of documents that the dictionary is built from, and bytes used of each.
pub(super) const LEARNT_FROM: usize = 1000;
const SAMPLE: usize = 16 << 10;

const LEVEL: i32 = 3;
/// Maximum size of a note in bytes.
const MAX_NOTE: usize = 1 << 24;
/// Bytes before the frame: the length of the text.
const LENGTH: usize = 4;

/// Compresses texts to frames and decompresses them. A store's dictionary never changes once it exists.
#[derive(Default)]
pub(super) struct Packing {
    dictionary: OnceLock<Dictionary>,
}

struct Dictionary {
    encoder: EncoderDictionary<'static>,
    decoder: DecoderDictionary<'static>,
}

impl Dictionary {
    /// Returns `None` if Zstandard rejects these bytes as a dictionary; the constructors of `zstd` would panic.
    fn new(bytes: &[u8]) -> Option<Self> {
        CDict::try_create(bytes, LEVEL)?;
        DDict::try_create(bytes)?;
        let (encoder, decoder) = (EncoderDictionary::copy(bytes, LEVEL), DecoderDictionary::copy(bytes));
        Some(Dictionary { encoder, decoder })
    }
}

impl Packing {
    /// Loads the store's dictionary, if it has one.
    pub(super) fn learn<F: Fingerprint>(&self, store: &Snapshot<F>) -> Result<bool> {
        if self.dictionary.get().is_none()
            && let Some(bytes) = dictionary_of(store)?
        {
            let dictionary = Dictionary::new(&bytes).ok_or_else(|| {
                Error::Refused(format!(
                    "{}: the marks `{MARK}0` to `{MARK}{}` do not hold a Zstandard dictionary for the store's texts: restore the store, \
                     or create it again from its documents",
                    store.path().display(),
                    PARTS - 1
                ))
            })?;
            // Another thread may have set the same dictionary.
            let _ = self.dictionary.set(dictionary);
        }
        Ok(self.dictionary.get().is_some())
    }

    /// Returns the stored bytes of a text.
    pub(super) fn pack(&self, text: &str) -> Result<Vec<u8>> {
        let too_long = |bytes: usize| {
            Error::BadArgument(format!(
                "the text is too long for a store that keeps texts: {} bytes, {bytes} bytes compressed, expected at most {}",
                text.len(),
                MAX_NOTE - estimate::BYTES - LENGTH
            ))
        };
        let length = u32::try_from(text.len()).map_err(|_| too_long(text.len()))?;
        let compressor = match self.dictionary.get() {
            Some(dictionary) => zstd::bulk::Compressor::with_prepared_dictionary(&dictionary.encoder),
            None => zstd::bulk::Compressor::new(LEVEL),
        };
        let frame = compressor.and_then(|mut compressor| {
            // Checksum and size are omitted: the note's chunk has a checksum, and the length precedes the frame.
            compressor.include_contentsize(false)?;
            compressor.compress(text.as_bytes())
        });
        let frame = frame.map_err(|error| Error::Refused(format!("cannot compress a text: {error}")))?;
        let packed = [&length.to_le_bytes()[..], &frame].concat();
        if estimate::BYTES + packed.len() > MAX_NOTE { Err(too_long(frame.len())) } else { Ok(packed) }
    }

    /// Decompresses the stored bytes of a text. The inner error is the reason if the bytes are damaged.
    pub(super) fn unpack<F: Fingerprint>(
        &self,
        packed: &[u8],
        store: &Snapshot<F>,
    ) -> Result<Result<String, &'static str>> {
        let Some((length, frame)) = packed.split_first_chunk::<LENGTH>() else { return Ok(Err("no text")) };
        let needs_dictionary = zstd::zstd_safe::get_dict_id_from_frame(frame).is_some();
        if needs_dictionary && !self.learn(store)? {
            return Ok(Err("a text compressed with a dictionary that the store does not have"));
        }
        let length = u32::from_le_bytes(*length) as usize;
        let mut bytes = Vec::new();
        // Read up to the end: the length in damaged bytes may be arbitrarily large.
        let read = match self.dictionary.get().filter(|_| needs_dictionary) {
            Some(dictionary) => zstd::Decoder::with_prepared_dictionary(frame, &dictionary.decoder)
                .and_then(|decoder| decoder.take(length as u64 + 1).read_to_end(&mut bytes)),
            None => zstd::Decoder::new(frame)
                .and_then(|decoder| decoder.take(length as u64 + 1).read_to_end(&mut bytes)),
        };
        if read.is_err() || bytes.len() != length {
            return Ok(Err("a text that cannot be decompressed"));
        }
        Ok(String::from_utf8(bytes).map_err(|_| "a text that is not UTF-8"))
    }
}

/// Returns the keys of the marks that hold the dictionary.
pub(super) fn dictionary_marks() -> impl Iterator<Item = String> {
    (0..PARTS).map(|part| format!("{MARK}{part}"))
}

/// Returns the store's dictionary, joined from its marks.
fn dictionary_of<F: Fingerprint>(store: &Snapshot<F>) -> Result<Option<Vec<u8>>> {
    let mut dictionary = Vec::new();
    for key in dictionary_marks() {
        match store.mark(&key)? {
            Some(bytes) => dictionary.extend(bytes),
            None => break,
        }
    }
    Ok((!dictionary.is_empty()).then_some(dictionary))
}

/// Returns the beginning of a text that is used for the dictionary.
pub(super) fn sample(mut text: String) -> String {
    let mut end = text.len().min(SAMPLE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.shrink_to_fit();
    text
}

/// Builds a dictionary from texts and stores it. Does nothing if the texts are too few or too much alike.
pub(super) fn store_dictionary<F: Fingerprint>(store: &Store<F>, texts: &[String]) -> Result<()> {
    let samples: Vec<&[u8]> = texts.iter().map(|text| &text.as_bytes()[..text.len().min(SAMPLE)]).collect();
    let Ok(dictionary) = zstd::dict::from_samples(&samples, PART * PARTS) else { return Ok(()) };
    let mut transaction = store.transaction();
    for (part, bytes) in dictionary.chunks(PART).enumerate() {
        transaction.mark(&format!("{MARK}{part}"), bytes)?;
    }
    transaction.commit(simstore::Durability::Os)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simstore::StoreOptions;

    use super::*;

    proptest! {
        #[test]
        fn texts_come_back(texts in prop::collection::vec(".{0,200}", 1..5), bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::<u64>::open(&folder.path().join("store"), StoreOptions::default()).unwrap();
            let (packing, store) = (Packing::default(), store.snapshot());
            for text in texts {
                let packed = packing.pack(&text).unwrap();
                prop_assert_eq!(packing.unpack(&packed, &store).unwrap(), Ok(text.clone()));
                for length in 0..packed.len() {
                    prop_assert!(packing.unpack(&packed[..length], &store).unwrap() != Ok(text.clone()) || text.is_empty());
                }
            }
            // Any result is fine, as long as the call returns.
            let _ = packing.unpack(&bytes, &store).unwrap();
        }
    }

    /// A mark may hold any bytes. Bytes that only begin like a dictionary are refused.
    #[test]
    fn a_mark_that_is_no_dictionary_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let magic = [0x37, 0xa4, 0x30, 0xec];
        for (number, more) in [vec![0; 4], vec![0xff; 100]].into_iter().enumerate() {
            let store =
                Store::<u64>::open(&folder.path().join(number.to_string()), StoreOptions::default()).unwrap();
            let mut transaction = store.transaction();
            transaction.mark(&format!("{MARK}0"), &[&magic[..], &more].concat()).unwrap();
            transaction.commit(simstore::Durability::Os).unwrap();
            let learnt = Packing::default().learn(&store.snapshot());
            let refused = matches!(&learnt, Err(Error::Refused(reason)) if reason.contains("do not hold a Zstandard dictionary"));
            assert!(refused, "{number}: {learnt:?}");
        }
    }

    #[test]
    fn a_dictionary_is_stored_and_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
        let text = |i: u64| {
            let words = (0..60_u64).map(|word| format!("w{} ", (i * 31 + word * word * 7) % 500));
            format!("A page about the subject number {i}. {}", words.collect::<String>())
        };
        let texts: Vec<String> = (0..LEARNT_FROM as u64).map(text).collect();
        let plain = Packing::default();
        assert!(!plain.learn(&store.snapshot()).unwrap());
        let without = plain.pack(&text(5000)).unwrap();
        store_dictionary(&store, &texts).unwrap();
        let packing = Packing::default();
        assert!(packing.learn(&store.snapshot()).unwrap());
        let with = packing.pack(&text(5000)).unwrap();
        assert!(with.len() * 10 < without.len() * 8, "{} {}", with.len(), without.len());
        // Older frames can still be read, and a reader without the dictionary loads it.
        for (packing, packed) in [(&packing, &without), (&plain, &with), (&Packing::default(), &with)] {
            assert_eq!(packing.unpack(packed, &store.snapshot()).unwrap(), Ok(text(5000)));
        }
        let other = Store::<u64>::open(&folder.path().join("other"), StoreOptions::default()).unwrap();
        let lost = Packing::default().unpack(&with, &other.snapshot()).unwrap();
        assert!(lost.unwrap_err().contains("dictionary"));
    }
}
