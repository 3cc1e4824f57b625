//! [`Builder`]: builds a new store from a complete set of fingerprints.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::new_store::NewStore;
use super::snapshot::Snapshot;
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::{Manifest, SegmentEntry, Settings};
use crate::options::BuildOptions;
use crate::segment::SegmentBuilder;

/// Builds a store from fingerprints in any order.
///
/// The store appears when [`Builder::finish`] has made everything durable. A builder that is dropped before then
/// removes its files. If the process is killed during a build, the next build removes the files of the killed one.
pub struct Builder<F: Fingerprint> {
    /// Options of the build. `options.fs` is the file system of the locked folder.
    options: BuildOptions,
    /// The fingerprints and names so far. Dropped before `folder`, so that its temporary files are removed first.
    segment: Option<SegmentBuilder<F>>,
    folder: NewStore,
    disk: Arc<dyn Fs>,
    pub(super) highest_id: Option<u64>,
    /// Whether any fingerprint has been inserted by [`Builder::insert`] or [`Builder::insert_named`].
    has_inserted: bool,
}

impl<F: Fingerprint> Builder<F> {
    /// Starts to build a store in a folder that does not exist, is empty, or holds an unfinished build. If
    /// `options.replace` is set, the folder may also hold a store, which the new store replaces.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the folder holds other files, a store that has lost its manifest, or, without
    /// `options.replace`, any store. [`Error::Locked`] if this process or another one is building the store, or
    /// writing to it. [`Error::BadArgument`] or [`Error::IncompletePlan`] for impossible options. [`Error::Io`].
    pub fn create(path: &Path, options: BuildOptions) -> Result<Self> {
        // Refuses impossible options before any file is created.
        options.plan.validate::<F>(options.distance)?;
        crate::format::check_block_size(options.block_size)?;
        // If a span is given, an objective chooses only codecs with restart points, which have the same rule for spans.
        let codec = if options.codec_objective.is_some() { Codec::FirstDifference } else { options.codec };
        crate::table::check_span(codec, options.span)?;
        crate::options::check_memory(options.memory)?;
        let disk = options.fs.clone();
        let folder = NewStore::create(&disk, path, options.replace)?;
        let options = BuildOptions { fs: folder.fs().clone(), ..options };
        let segment = Some(SegmentBuilder::new(path, folder.free_number(), options.clone()));
        Ok(Builder { options, segment, folder, disk, highest_id: None, has_inserted: false })
    }

    /// Adds a fingerprint with an id. Adding the same pair again changes nothing. A fingerprint may have any number
    /// of ids.
    ///
    /// # Errors
    /// [`Error::Io`] if a temporary file for sorting cannot be written.
    pub fn insert(&mut self, fingerprint: F, id: u64) -> Result<()> {
        self.has_inserted = true;
        if self.options.ids {
            self.highest_id = self.highest_id.max(Some(id));
        }
        match &mut self.segment {
            Some(segment) => segment.insert(fingerprint, id),
            None => Ok(()),
        }
    }

    /// Like [`Builder::insert`], for a document with a name of up to 64 KiB. Each id must be larger than that of the
    /// previous named document.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] if the id is not larger than the id of the previous named document,
    /// [`Error::BadArgument`] if the store keeps no ids or if the name is longer than 64 KiB, [`Error::Io`].
    pub fn insert_named(&mut self, fingerprint: F, id: u64, name: &str) -> Result<()> {
        self.set_name(id, name)?;
        self.insert(fingerprint, id)
    }

    /// Returns the file system for files in the folder. Each of its operations first checks that the folder at the
    /// path is still the locked one.
    pub(super) fn fs(&self) -> &Arc<dyn Fs> {
        &self.options.fs
    }

    /// Sets the name of a document, even of one without fingerprints. Each id must be larger than the previous one.
    pub(super) fn set_name(&mut self, id: u64, name: &str) -> Result<()> {
        self.segment.as_mut().map_or(Ok(()), |segment| segment.add_name(id, name))
    }

    /// Stores a note with a document: up to 16 MiB of any bytes, such as its compressed text. Each id must be larger
    /// than that of the previous note.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] if the id is not larger than the id of the previous note, [`Error::BadArgument`] if the store
    /// keeps no ids or for too many bytes, [`Error::Io`].
    pub fn set_note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        self.segment.as_mut().map_or(Ok(()), |segment| segment.add_note(id, note))
    }

    /// Stores a metadata value under a key. Each key must be greater than the previous one.
    pub(super) fn set_metadata(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.segment.as_mut().map_or(Ok(()), |segment| segment.add_metadata(key, value))
    }

    /// Sorts the fingerprints, writes all files, and makes the store visible and durable.
    ///
    /// # Errors
    /// [`Error::Io`]. After an error there is no new store, and an old store is unchanged, with one exception: if
    /// the very last sync fails, the new store is visible, but may not survive a power failure.
    pub fn finish(mut self) -> Result<Snapshot<F>> {
        let written = self.segment.take().map(SegmentBuilder::finish_with_codec).transpose()?;
        self.publish(written)
    }

    /// Like [`Builder::finish`], for a store without ids. The fingerprints come from the function `source` in sorted
    /// order, not from [`Builder::insert`]. So the first table needs no sorting, and no memory except for its block
    /// index.
    ///
    /// `source` is called several times: once to choose the codec if `codec_objective` is set, once to count the
    /// fingerprints, and once for each table. The argument of `source` is a function that takes a batch of
    /// fingerprints. In each call, `source` must pass all fingerprints, strictly ascending, to this function, and must
    /// return any error of the function.
    ///
    /// ```
    /// use simstore::{BuildOptions, Builder};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("squares");
    /// let options = BuildOptions { ids: false, ..BuildOptions::default() };
    /// let builder = Builder::<u64>::create(&path, options)?;
    /// let store = builder.finish_sorted(|write| (0..1000_u64).try_for_each(|i| write(&[i * i])))?;
    /// assert_eq!(store.len(), 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`Builder::finish`]; [`Error::OutOfOrder`]; [`Error::BadArgument`] if `ids` is set in the
    /// options, if fingerprints were inserted, or if two calls of `source` yield different numbers of
    /// fingerprints.
    pub fn finish_sorted(
        mut self,
        source: impl Fn(&mut dyn FnMut(&[F]) -> Result<()>) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Snapshot<F>> {
        if self.options.ids || self.has_inserted {
            let message =
                "fingerprints of a source have no ids, and none are inserted beside them".to_string();
            return Err(Error::BadArgument(message));
        }
        let count = OnceLock::new();
        let checked_source = move |write: &mut dyn FnMut(&[F]) -> Result<()>| {
            let mut given = 0_u64;
            source(&mut |fingerprints| {
                given += fingerprints.len() as u64;
                write(fingerprints)
            })?;
            let before = *count.get_or_init(|| given);
            if given == before {
                return Ok(());
            }
            Err(Error::BadArgument(format!(
                "the source gave {before} fingerprints when they were counted, and {given} when they were written"
            )))
        };
        let source = Box::new(checked_source);
        let written = self.segment.take().map(|segment| segment.finish_sorted(source)).transpose()?;
        self.publish(written)
    }

    /// Makes the store visible and durable. `written` has the manifest entry of the new segment, and the codec of its
    /// tables.
    fn publish(mut self, written: Option<(SegmentEntry, Codec)>) -> Result<Snapshot<F>> {
        self.folder.add_files(written.iter().flat_map(|(entry, _)| entry.file_names()).collect());
        let options = self.options;
        let settings = Settings {
            bits: F::BITS,
            distance: options.distance,
            codec: written.as_ref().map_or(options.codec, |(_, codec)| *codec),
            has_ids: options.ids,
            block_size: options.block_size,
            span: options.span,
            profile: options.profile,
            plan: options.plan,
        };
        let manifest = Manifest {
            settings,
            next_number: self.folder.free_number() + 1,
            first_log: 0,
            first_sequence: 0,
            highest_id: self.highest_id,
            segments: written.into_iter().map(|(entry, _)| entry).collect(),
        };
        let path = self.folder.path().to_path_buf();
        self.folder.publish(&manifest)?;
        Snapshot::open_on(&self.disk, &path)
    }
}
