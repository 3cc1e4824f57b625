//! Compression of the texts in a store. Each text becomes a Zstandard frame. The compression dictionary is trained on the store's
//! first texts.

use std::io::Read;
use std::sync::OnceLock;

use simstore::{Error, Fingerprint, Result, Snapshot, Store};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::{CDict, DDict};

use super::similarity_estimate;

/// Prefix of the metadata keys under which the parts of the compression dictionary are stored. The part's number, from 0, follows.
const DICTIONARY_KEY_PREFIX: &str = "similar texts ";
/// Size in bytes of each part of the compression dictionary except the last. With [`DICTIONARY_PARTS`] parts, the dictionary has up
/// to 32 KiB. Such a dictionary saves a quarter to half of the bytes of compressed pages and paragraphs.
const DICTIONARY_PART_BYTES: usize = 4096;
const DICTIONARY_PARTS: usize = 8;
/// Number of texts that the compression dictionary is trained on.
pub(super) const DICTIONARY_SAMPLES: usize = 1000;
/// Maximum number of bytes, from the beginning of a text, that the training of the compression dictionary uses.
const SAMPLE_BYTES_MAX: usize = 16 << 10;

const COMPRESSION_LEVEL: i32 = 3;
/// Maximum size in bytes of a document's note, which consists of the signature and the compressed text.
const NOTE_BYTES_MAX: usize = 1 << 24;
/// Size in bytes of the encoded text length, which precedes the Zstandard frame of a compressed text.
const LENGTH_BYTES: usize = 4;

/// Compresses and decompresses the texts of a store. It loads the store's compression dictionary once, because the dictionary never
/// changes.
#[derive(Default)]
pub(super) struct TextCodec {
    dictionary: OnceLock<TextDictionary>,
}

struct TextDictionary {
    encoder: EncoderDictionary<'static>,
    decoder: DecoderDictionary<'static>,
}

impl TextDictionary {
    /// Prepares a dictionary for compression and decompression. Returns `None` if Zstandard rejects the bytes. This is checked
    /// first, because the constructors of the crate `zstd` would panic.
    fn new(bytes: &[u8]) -> Option<Self> {
        CDict::try_create(bytes, COMPRESSION_LEVEL)?;
        DDict::try_create(bytes)?;
        let (encoder, decoder) =
            (EncoderDictionary::copy(bytes, COMPRESSION_LEVEL), DecoderDictionary::copy(bytes));
        Some(TextDictionary { encoder, decoder })
    }
}

impl TextCodec {
    /// Loads the store's compression dictionary if it is not loaded yet. Returns whether the store has a dictionary.
    pub(super) fn load_dictionary<F: Fingerprint>(&self, store: &Snapshot<F>) -> Result<bool> {
        if self.dictionary.get().is_none()
            && let Some(bytes) = read_dictionary(store)?
        {
            let dictionary = TextDictionary::new(&bytes).ok_or_else(|| {
                Error::Refused(format!(
                    "{}: the metadata `{DICTIONARY_KEY_PREFIX}0` to `{DICTIONARY_KEY_PREFIX}{}` do not hold a Zstandard dictionary for the store's texts: restore the store, \
                     or create it again from its documents",
                    store.path().display(),
                    DICTIONARY_PARTS - 1
                ))
            })?;
            // Another thread may have set the same dictionary.
            let _ = self.dictionary.set(dictionary);
        }
        Ok(self.dictionary.get().is_some())
    }

    /// Compresses a text. The result is the length of the text in bytes (`u32`, little-endian), then a Zstandard frame.
    pub(super) fn compress(&self, text: &str) -> Result<Vec<u8>> {
        let too_long = |bytes: usize| {
            Error::BadArgument(format!(
                "the text is too long for a store that keeps texts: {} bytes, {bytes} bytes compressed, expected at most {}",
                text.len(),
                NOTE_BYTES_MAX - similarity_estimate::SIGNATURE_BYTES - LENGTH_BYTES
            ))
        };
        let length = u32::try_from(text.len()).map_err(|_| too_long(text.len()))?;
        let compressor = match self.dictionary.get() {
            Some(dictionary) => zstd::bulk::Compressor::with_prepared_dictionary(&dictionary.encoder),
            None => zstd::bulk::Compressor::new(COMPRESSION_LEVEL),
        };
        let frame = compressor.and_then(|mut compressor| {
            // Checksum and size are omitted: the note's chunk has a checksum, and the length precedes the frame.
            compressor.include_contentsize(false)?;
            compressor.compress(text.as_bytes())
        });
        let frame = frame.map_err(|error| Error::Refused(format!("cannot compress a text: {error}")))?;
        let compressed = [&length.to_le_bytes()[..], &frame].concat();
        if similarity_estimate::SIGNATURE_BYTES + compressed.len() > NOTE_BYTES_MAX {
            Err(too_long(frame.len()))
        } else {
            Ok(compressed)
        }
    }

    /// Decompresses a text. If `compressed` is damaged, returns `Ok(Err(damage))` with a description of the damage. The outer error
    /// is for a store that cannot be read.
    pub(super) fn decompress<F: Fingerprint>(
        &self,
        compressed: &[u8],
        store: &Snapshot<F>,
    ) -> Result<Result<String, &'static str>> {
        let Some((length, frame)) = compressed.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(Err("no text"));
        };
        let needs_dictionary = zstd::zstd_safe::get_dict_id_from_frame(frame).is_some();
        if needs_dictionary && !self.load_dictionary(store)? {
            return Ok(Err("a text compressed with a dictionary that the store does not have"));
        }
        let length = u32::from_le_bytes(*length) as usize;
        let mut bytes = Vec::new();
        // No memory is reserved: in damaged bytes, the length may be arbitrarily large.
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

/// Iterates over the metadata keys under which the parts of the compression dictionary may be stored.
pub(super) fn dictionary_keys() -> impl Iterator<Item = String> {
    (0..DICTIONARY_PARTS).map(|part| format!("{DICTIONARY_KEY_PREFIX}{part}"))
}

/// Reads the store's compression dictionary, joined from its parts; `None` if the store has no dictionary.
fn read_dictionary<F: Fingerprint>(store: &Snapshot<F>) -> Result<Option<Vec<u8>>> {
    let mut dictionary = Vec::new();
    for key in dictionary_keys() {
        match store.metadata(&key)? {
            Some(bytes) => dictionary.extend(bytes),
            None => break,
        }
    }
    Ok((!dictionary.is_empty()).then_some(dictionary))
}

/// Returns the beginning of a text, at most [`SAMPLE_BYTES_MAX`] bytes. Only this part is used for training the compression
/// dictionary.
pub(super) fn truncate_sample(mut text: String) -> String {
    let mut end = text.len().min(SAMPLE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.shrink_to_fit();
    text
}

/// Trains a compression dictionary on texts and stores the dictionary. Does nothing if Zstandard cannot train a dictionary, because
/// the texts are too few or too similar.
pub(super) fn store_dictionary<F: Fingerprint>(store: &Store<F>, texts: &[String]) -> Result<()> {
    let samples: Vec<&[u8]> =
        texts.iter().map(|text| &text.as_bytes()[..text.len().min(SAMPLE_BYTES_MAX)]).collect();
    let Ok(dictionary) = zstd::dict::from_samples(&samples, DICTIONARY_PART_BYTES * DICTIONARY_PARTS) else {
        return Ok(());
    };
    let mut transaction = store.transaction();
    for (part, bytes) in dictionary.chunks(DICTIONARY_PART_BYTES).enumerate() {
        transaction.set_metadata(&format!("{DICTIONARY_KEY_PREFIX}{part}"), bytes)?;
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
            let (codec, store) = (TextCodec::default(), store.snapshot());
            for text in texts {
                let compressed = codec.compress(&text).unwrap();
                prop_assert_eq!(codec.decompress(&compressed, &store).unwrap(), Ok(text.clone()));
                for length in 0..compressed.len() {
                    prop_assert!(codec.decompress(&compressed[..length], &store).unwrap() != Ok(text.clone()) || text.is_empty());
                }
            }
            // Any result is fine, as long as the call returns.
            let _ = codec.decompress(&bytes, &store).unwrap();
        }
    }

    /// Bytes in the metadata that begin like a Zstandard dictionary, but are not one, are refused.
    #[test]
    fn a_mark_that_is_no_dictionary_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let magic = [0x37, 0xa4, 0x30, 0xec];
        for (number, more) in [vec![0; 4], vec![0xff; 100]].into_iter().enumerate() {
            let store =
                Store::<u64>::open(&folder.path().join(number.to_string()), StoreOptions::default()).unwrap();
            let mut transaction = store.transaction();
            transaction
                .set_metadata(&format!("{DICTIONARY_KEY_PREFIX}0"), &[&magic[..], &more].concat())
                .unwrap();
            transaction.commit(simstore::Durability::Os).unwrap();
            let loaded = TextCodec::default().load_dictionary(&store.snapshot());
            let refused = matches!(&loaded, Err(Error::Refused(reason)) if reason.contains("do not hold a Zstandard dictionary"));
            assert!(refused, "{number}: {loaded:?}");
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
        let texts: Vec<String> = (0..DICTIONARY_SAMPLES as u64).map(text).collect();
        let plain = TextCodec::default();
        assert!(!plain.load_dictionary(&store.snapshot()).unwrap());
        let without = plain.compress(&text(5000)).unwrap();
        store_dictionary(&store, &texts).unwrap();
        let codec = TextCodec::default();
        assert!(codec.load_dictionary(&store.snapshot()).unwrap());
        let with = codec.compress(&text(5000)).unwrap();
        assert!(with.len() * 10 < without.len() * 8, "{} {}", with.len(), without.len());
        // Older frames can still be read, and a reader without the dictionary loads it.
        for (codec, compressed) in [(&codec, &without), (&plain, &with), (&TextCodec::default(), &with)] {
            assert_eq!(codec.decompress(compressed, &store.snapshot()).unwrap(), Ok(text(5000)));
        }
        let other = Store::<u64>::open(&folder.path().join("other"), StoreOptions::default()).unwrap();
        let lost = TextCodec::default().decompress(&with, &other.snapshot()).unwrap();
        assert!(lost.unwrap_err().contains("dictionary"));
    }
}
