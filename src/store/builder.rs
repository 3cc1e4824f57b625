//! [`Builder`]: builds a new store from a complete set of fingerprints.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::locked_folder::LockedFolder;
use super::{LOCK_FILE, Snapshot, create_folder, remove_build_marker, remove_unlisted_files, sync_parent};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::{
    BUILD_MARKER, MANIFEST, MANIFEST_LOST_REASON, Manifest, SegmentEntry, Settings, is_manifest_lost,
    is_store_file, next_free_number,
};
use crate::options::BuildOptions;
use crate::segment::SegmentBuilder;
use crate::threads::Process;

/// Builds a store from fingerprints in any order.
///
/// The store appears when [`Builder::finish`] has made everything durable. A builder that is dropped before then
/// removes its files. If the process is killed during a build, the next build removes the files of the killed one.
pub struct Builder<F: Fingerprint> {
    store: PathBuf,
    disk: Arc<dyn Fs>,
    /// Options of the build. After the folder has been locked, `options.fs` is the file system of the locked folder.
    options: BuildOptions,
    /// File number of the new segment.
    number: u64,
    segment: Option<SegmentBuilder<F>>,
    pub(super) highest_id: Option<u64>,
    /// Whether any fingerprint has been inserted by [`Builder::insert`] or [`Builder::insert_named`].
    has_inserted: bool,
    /// Names of all files of the old store, if this build replaces one.
    replaced: Vec<String>,
    /// File names of the finished new segment, until the manifest lists the segment. Dropping the builder removes these
    /// files.
    created_files: Vec<String>,
    /// Whether the folder has the marker file of an unfinished build. When the store is complete, the marker file is
    /// renamed to the manifest.
    has_marker: bool,
    is_new_folder: bool,
    locked: Option<LockedFolder>,
    process: Process,
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
        let fs = options.fs.clone();
        let is_new_folder = create_folder(&*fs, path)?;
        let mut builder = Builder {
            store: path.to_path_buf(),
            disk: fs,
            options,
            number: 0,
            segment: None,
            highest_id: None,
            has_inserted: false,
            replaced: Vec::new(),
            created_files: Vec::new(),
            has_marker: false,
            is_new_folder,
            locked: None,
            process: Process::this(),
        };
        builder.number = builder.prepare_folder()?;
        builder.segment = Some(SegmentBuilder::new(path, builder.number, builder.options.clone()));
        Ok(builder)
    }

    /// Locks the folder, removes the files of a killed build, and returns the file number for the new segment.
    fn prepare_folder(&mut self) -> Result<u64> {
        // If the folder is not a store's, nothing is created in it, not even a lock file.
        self.check_folder(&*self.disk)?;
        let locked = LockedFolder::acquire(&self.disk, &self.store)?;
        let fs = &locked;
        // Another build may have finished in between, so the folder is checked again under the lock.
        let names = self.check_folder(fs)?;
        let old = match names.iter().any(|name| name == MANIFEST) {
            true => Some(Manifest::load(fs, &self.store)),
            false => None,
        };
        self.options.fs = Arc::new(locked.clone());
        self.locked = Some(locked.clone());
        if old.is_some() {
            remove_build_marker(fs, &self.store)?;
        } else {
            self.mark_unfinished(fs, &names)?;
        }
        self.replaced = match &old {
            None => Vec::new(),
            Some(Ok(old)) => old.file_names(&names),
            // An unreadable store is replaced, too. Its files stay until the new store is complete.
            Some(Err(_)) => names.iter().filter(|name| is_store_file(name)).cloned().collect(),
        };
        remove_unlisted_files(fs, &self.store, &self.replaced)?;
        let number = next_free_number(old.and_then(Result::ok).as_ref(), &self.replaced);
        Ok(number)
    }

    /// Creates the marker file of an unfinished build, unless it exists. `names` has the names of the files in the
    /// folder. The marker permits the next build to remove this build's files, so it is made durable before any of
    /// these files is created.
    fn mark_unfinished(&mut self, fs: &dyn Fs, names: &[String]) -> Result<()> {
        self.has_marker = true;
        if names.iter().any(|name| name == BUILD_MARKER) {
            return Ok(());
        }
        let marker = self.store.join(BUILD_MARKER);
        let mut file = fs.create(&marker).map_err(Error::io(&marker, "create"))?;
        file.sync().map_err(Error::io(&marker, "sync"))?;
        fs.sync_dir(&self.store).map_err(Error::io(&self.store, "sync"))
    }

    /// Returns the names of the files in the folder, or an error if no store may be built in this folder.
    fn check_folder(&self, fs: &dyn Fs) -> Result<Vec<String>> {
        let path = &self.store;
        let refuse = |reason| Err(Error::AlreadyExists { path: path.clone(), reason });
        let names = match fs.list(path) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return refuse("a file is in the way; choose another path for the store");
            }
            Err(error) => return Err(Error::io(path, "list")(error)),
        };
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        // A build creates its lock file first, so files without a lock file are not from a build.
        let only_store_files = names
            .iter()
            .all(|name| is_store_file(name) || [LOCK_FILE, MANIFEST, BUILD_MARKER].contains(&&name[..]));
        let is_ours = names.is_empty() || ((has(LOCK_FILE) || has(BUILD_MARKER)) && only_store_files);
        if only_store_files && is_manifest_lost(&names) {
            return refuse(MANIFEST_LOST_REASON);
        }
        if has(MANIFEST) && (is_ours || Manifest::has_magic(fs, path)) {
            if !self.options.replace {
                return refuse("a store already exists; option `replace` replaces it");
            }
        } else if !is_ours {
            return refuse("the directory is not empty and not a store; choose another path for the store");
        }
        Ok(names)
    }

    /// Adds a fingerprint with an id. Adding the same pair again changes nothing. A fingerprint may have any number
    /// of ids.
    ///
    /// # Errors
    /// [`Error::Io`] if a temporary file for sorting cannot be written.
    pub fn insert(&mut self, fingerprint: F, id: u64) -> Result<()> {
        self.has_inserted = true;
        self.highest_id = self.highest_id.max(Some(id));
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
    /// [`Error::BadArgument`] if the name is longer than 64 KiB, [`Error::Io`].
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
    /// [`Error::OutOfOrder`] if the id is not larger than the id of the previous note, [`Error::BadArgument`] for too
    /// many bytes, [`Error::Io`].
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

    /// Makes the names of the new files durable, then writes the manifest, which makes the store visible. `written`
    /// has the manifest entry of the new segment, and the codec of its tables.
    fn publish(mut self, written: Option<(SegmentEntry, Codec)>) -> Result<Snapshot<F>> {
        self.created_files = written.iter().flat_map(|(entry, _)| entry.file_names()).collect();
        let fs: Arc<dyn Fs> = self.options.fs.clone();
        fs.sync_dir(&self.store).map_err(Error::io(&self.store, "sync"))?;
        if self.is_new_folder {
            sync_parent(&*fs, &self.store)?;
        }
        let options = &self.options;
        let settings = Settings {
            bits: F::BITS,
            distance: options.distance,
            codec: written.as_ref().map_or(options.codec, |(_, codec)| *codec),
            has_ids: options.ids,
            block_size: options.block_size,
            span: options.span,
            profile: options.profile.clone(),
            plan: options.plan.clone(),
        };
        let manifest = Manifest {
            settings,
            next_number: self.number + 1,
            first_log: 0,
            first_sequence: 0,
            highest_id: self.highest_id,
            segments: written.into_iter().map(|(entry, _)| entry).collect(),
        };
        let saved = match self.has_marker {
            true => manifest.save_over_marker(&fs, &self.store),
            false => manifest.save(&fs, &self.store),
        };
        if let Err(error) = saved {
            let may_be_visible = match Manifest::load(&*fs, &self.store) {
                Ok(found) => found == manifest,
                Err(Error::NotAStore { .. }) => false,
                // The disk may have the old or the new manifest, so the files of both stores stay.
                Err(_) => true,
            };
            if may_be_visible {
                self.created_files.clear();
                self.has_marker = false;
                self.is_new_folder = false;
            }
            return Err(error);
        }
        self.is_new_folder = false;
        self.has_marker = false;
        self.created_files.clear();
        // The store is complete. If an old file cannot be removed now, the next build removes it.
        self.replaced.iter().for_each(|name| drop(fs.remove(&self.store.join(name))));
        if let Some(locked) = &self.locked {
            locked.check().map_err(Error::io(&self.store, "open"))?;
        }
        Snapshot::open_on(&self.disk, &self.store)
    }
}

impl<F: Fingerprint> Drop for Builder<F> {
    fn drop(&mut self) {
        // Dropping the segment builder removes its unfinished files.
        self.segment = None;
        if !self.process.is_here() {
            return;
        }
        let fs = &self.options.fs;
        // Only files of this build are removed. The marker is removed last, and stays if any other file could not be
        // removed.
        self.created_files.iter().for_each(|name| drop(fs.remove(&self.store.join(name))));
        let is_empty =
            || fs.list(&self.store).is_ok_and(|names| !names.iter().any(|name| is_store_file(name)));
        if self.has_marker && is_empty() {
            // If this sync fails, a power failure may leave files without the marker. Later builds then refuse the
            // folder, and do not remove its files.
            let _ = fs.sync_dir(&self.store);
            let _ = fs.remove(&self.store.join(BUILD_MARKER));
        }
        let is_moved = self.locked.as_ref().is_some_and(|locked| locked.check().is_err());
        if !self.is_new_folder || is_moved {
            return;
        }
        if self.locked.is_some() {
            let _ = self.disk.remove(&self.store.join(LOCK_FILE));
        }
        // If another build has begun in the folder, this fails, as intended.
        let _ = self.disk.remove_dir(&self.store);
    }
}
