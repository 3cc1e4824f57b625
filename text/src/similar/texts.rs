//! Texts as a store keeps them: frames of Zstandard, with a dictionary made from the first ones.

use std::io::Read;
use std::sync::OnceLock;

use simstore::{Error, Fingerprint, Result, Snapshot, Store};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{CDict, DDict};

use super::estimate;

/// The marks that hold the dictionary, one part each, are called this and a number from 0 on.
const MARK: &str = "similar texts ";
/// A mark holds so many bytes, and there are so many of them: a dictionary of 32 KiB. Beside frames without one it saves a
/// quarter to half of the bytes of pages and paragraphs.
const PART: usize = 4096;
const PARTS: usize = 8;
/// It is made from so many documents, and so many bytes of each.
pub(super) const LEARNT_FROM: usize = 1000;
const SAMPLE: usize = 16 << 10;

const LEVEL: i32 = 3;
/// A note has at most so many bytes.
const MAX_NOTE: usize = 1 << 24;
/// What goes before the frame: the length of the text.
const LENGTH: usize = 4;

/// Makes frames of texts, and texts of frames. The dictionary of a store never changes once there is one.
#[derive(Default)]
pub(super) struct Packing {
    dictionary: OnceLock<Dictionary>,
}

struct Dictionary {
    encoder: EncoderDictionary<'static>,
    decoder: DecoderDictionary<'static>,
}

impl Dictionary {
    /// `None` if Zstandard makes no dictionary of these bytes; the constructors of `zstd` would panic.
    fn new(bytes: &[u8]) -> Option<Self> {
        CDict::try_create(bytes, LEVEL)?;
        DDict::try_create(bytes)?;
        let (encoder, decoder) = (EncoderDictionary::copy(bytes, LEVEL), DecoderDictionary::copy(bytes));
        Some(Dictionary { encoder, decoder })
    }
}

impl Packing {
    /// Takes the dictionary of a store, if it has one.
    pub(super) fn learn<F: Fingerprint>(&self, store: &Snapshot<F>) -> Result<bool> {
        if self.dictionary.get().is_none()
            && let Some(bytes) = dictionary_of(store)?
        {
            let dictionary = Dictionary::new(&bytes).ok_or_else(|| {
                Error::Refused(format!(
                    "{}: the marks `{MARK}0` to `{MARK}{}` hold no dictionary of Zstandard, expected the one by which the store's texts \
                     are compressed: restore the store, or make it again from its documents",
                    store.path().display(),
                    PARTS - 1
                ))
            })?;
            // Another thread may have set the same one.
            let _ = self.dictionary.set(dictionary);
        }
        Ok(self.dictionary.get().is_some())
    }

    /// The bytes that a store keeps of a text.
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
            // The chunk of the note has a checksum, and before the frame is the length.
            compressor.include_contentsize(false)?;
            compressor.compress(text.as_bytes())
        });
        let frame = frame.map_err(|error| Error::Refused(format!("cannot compress a text: {error}")))?;
        let packed = [&length.to_le_bytes()[..], &frame].concat();
        if estimate::BYTES + packed.len() > MAX_NOTE { Err(too_long(frame.len())) } else { Ok(packed) }
    }

    /// The text of some bytes that a store keeps; with a reason if they are not those of one.
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
        // As much as there is: what is damaged may claim any length.
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

/// The keys of the marks that hold the dictionary.
pub(super) fn dictionary_marks() -> impl Iterator<Item = String> {
    (0..PARTS).map(|part| format!("{MARK}{part}"))
}

/// The dictionary that a store has: the parts of its marks.
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

/// As much of a text as a dictionary is made of.
pub(super) fn sample(mut text: String) -> String {
    let mut end = text.len().min(SAMPLE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.shrink_to_fit();
    text
}

/// Makes a dictionary of texts and stores it; not of texts that are too few or too much alike to make one of.
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
            // Whatever comes of it, it ends.
            let _ = packing.unpack(&bytes, &store).unwrap();
        }
    }

    /// A mark may hold anything. Bytes that begin as a dictionary and continue otherwise are refused.
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
            let refused = matches!(&learnt, Err(Error::Refused(reason)) if reason.contains("hold no dictionary of Zstandard"));
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
        // What was made before is read, and whoever has not the dictionary yet takes it.
        for (packing, packed) in [(&packing, &without), (&plain, &with), (&Packing::default(), &with)] {
            assert_eq!(packing.unpack(packed, &store.snapshot()).unwrap(), Ok(text(5000)));
        }
        let other = Store::<u64>::open(&folder.path().join("other"), StoreOptions::default()).unwrap();
        let lost = Packing::default().unpack(&with, &other.snapshot()).unwrap();
        assert!(lost.unwrap_err().contains("dictionary"));
    }
}
