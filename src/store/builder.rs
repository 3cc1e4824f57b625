//! Builds a new store from all its fingerprints.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::locked_folder::LockedFolder;
use super::{LOCK, Snapshot, make_folder, remove_litter, remove_marker, sync_parent};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::manifest::{
    BUILDING, MANIFEST, MANIFEST_LOST, Manifest, SegmentEntry, Settings, free_number, is_manifest_lost,
    is_store_file,
};
use crate::options::BuildOptions;
use crate::segment::SegmentBuilder;
use crate::threads::Process;

/// Builds a store from fingerprints in any order.
///
/// The store appears when [`Builder::finish`] has made everything durable. A builder that is dropped before then
/// removes its files. If a build is killed, the next build removes the files that it left.
pub struct Builder<F: Fingerprint> {
    store: PathBuf,
    disk: Arc<dyn Fs>,
    /// Contains the disk `locked`, once the folder is locked.
    options: BuildOptions,
    /// Number of the segment.
    number: u64,
    segment: Option<SegmentBuilder<F>>,
    pub(super) highest_id: Option<u64>,
    /// Whether anything has been inserted.
    inserted: bool,
    /// The files of the store being replaced.
    replaced: Vec<String>,
    /// The files of the new segment, until a manifest names them.
    made: Vec<String>,
    /// Whether the folder has the marker of an unfinished build. The marker becomes the manifest.
    is_marked: bool,
    folder_is_new: bool,
    locked: Option<LockedFolder>,
    process: Process,
}

impl<F: Fingerprint> Builder<F> {
    /// Starts a store in a folder that does not exist, is empty, or holds an unfinished build.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the folder holds other files, a store without its manifest, or a store and
    /// `options.replace` is not set. [`Error::Locked`] if this process or another one is building the store, or
    /// writing to it. [`Error::BadArgument`] or [`Error::IncompletePlan`] for impossible options. [`Error::Io`].
    pub fn create(path: &Path, options: BuildOptions) -> Result<Self> {
        // Refuses impossible options before any file is made.
        options.plan.check::<F>(options.distance)?;
        crate::format::check_block_size(options.block_size)?;
        // If a span is given, every codec in question has restart points.
        let codec = if options.codec_for.is_some() { Codec::FirstDifference } else { options.codec };
        crate::table::check_span(codec, options.span)?;
        crate::options::check_memory(options.memory)?;
        let fs = options.fs.clone();
        let folder_is_new = make_folder(&*fs, path)?;
        let mut builder = Builder {
            store: path.to_path_buf(),
            disk: fs,
            options,
            number: 0,
            segment: None,
            highest_id: None,
            inserted: false,
            replaced: Vec::new(),
            made: Vec::new(),
            is_marked: false,
            folder_is_new,
            locked: None,
            process: Process::this(),
        };
        builder.number = builder.take_folder()?;
        builder.segment = Some(SegmentBuilder::new(path, builder.number, builder.options.clone()));
        Ok(builder)
    }

    /// Locks the folder, removes the files of a killed build, and returns the number of the new segment.
    fn take_folder(&mut self) -> Result<u64> {
        // Makes nothing in other folders, not even a lock.
        self.check_folder(&*self.disk)?;
        let locked = LockedFolder::take(&self.disk, &self.store)?;
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
            remove_marker(fs, &self.store)?;
        } else {
            self.mark_folder(fs, &names)?;
        }
        self.replaced = match &old {
            None => Vec::new(),
            Some(Ok(old)) => old.files(&names),
            // An unreadable store is replaced too. Until then it is not touched.
            Some(Err(_)) => names.iter().filter(|name| is_store_file(name)).cloned().collect(),
        };
        remove_litter(fs, &self.store, &self.replaced)?;
        let number = free_number(old.and_then(Result::ok).as_ref(), &self.replaced);
        Ok(number)
    }

    /// Marks the folder as an unfinished build, so that the next build may remove its files. Durable before any of
    /// them.
    fn mark_folder(&mut self, fs: &dyn Fs, names: &[String]) -> Result<()> {
        self.is_marked = true;
        if names.iter().any(|name| name == BUILDING) {
            return Ok(());
        }
        let marker = self.store.join(BUILDING);
        let mut file = fs.create(&marker).map_err(Error::io(&marker, "create"))?;
        file.sync().map_err(Error::io(&marker, "sync"))?;
        fs.sync_dir(&self.store).map_err(Error::io(&self.store, "sync"))
    }

    /// Returns the names in the folder, if a store may be built there.
    fn check_folder(&self, fs: &dyn Fs) -> Result<Vec<String>> {
        let path = &self.store;
        let taken = |reason| Err(Error::AlreadyExists { path: path.clone(), reason });
        let names = match fs.list(path) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return taken("a file is in the way; choose another path for the store");
            }
            Err(error) => return Err(Error::io(path, "list")(error)),
        };
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        // A build makes its lock first: files without a lock are not from a build.
        let only_ours =
            names.iter().all(|name| is_store_file(name) || [LOCK, MANIFEST, BUILDING].contains(&&name[..]));
        let ours = names.is_empty() || ((has(LOCK) || has(BUILDING)) && only_ours);
        if only_ours && is_manifest_lost(&names) {
            return taken(MANIFEST_LOST);
        }
        if has(MANIFEST) && (ours || Manifest::is_one(fs, path)) {
            if !self.options.replace {
                return taken("a store already exists; option `replace` replaces it");
            }
        } else if !ours {
            return taken("the directory is not empty and not a store; choose another path for the store");
        }
        Ok(names)
    }

    /// Adds a fingerprint with an id. Adding the same pair again changes nothing. A fingerprint may have any number
    /// of ids.
    ///
    /// # Errors
    /// [`Error::Io`] if a sorted run cannot be written.
    pub fn insert(&mut self, fingerprint: F, id: u64) -> Result<()> {
        self.inserted = true;
        self.highest_id = self.highest_id.max(Some(id));
        match &mut self.segment {
            Some(segment) => segment.insert(fingerprint, id),
            None => Ok(()),
        }
    }

    /// Like [`Builder::insert`], for a document with a name of up to 64 KiB. Ids must be ascending.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] if the id is not larger than the id of the previous named document,
    /// [`Error::BadArgument`] if the name is too long or not UTF-8, [`Error::Io`].
    pub fn insert_named(&mut self, fingerprint: F, id: u64, name: &str) -> Result<()> {
        self.name(id, name)?;
        self.insert(fingerprint, id)
    }

    /// The file system for files in the folder.
    pub(super) fn fs(&self) -> &Arc<dyn Fs> {
        &self.options.fs
    }

    /// Names a document, with or without fingerprints. Ids must be ascending.
    pub(super) fn name(&mut self, id: u64, name: &str) -> Result<()> {
        self.segment.as_mut().map_or(Ok(()), |segment| segment.name(id, name))
    }

    /// Keeps some bytes with a document, up to 16 MiB, such as its compressed text. Ids must be ascending.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] if the id is not larger than the id of the previous note, [`Error::BadArgument`] for too
    /// many bytes, [`Error::Io`].
    pub fn note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        self.segment.as_mut().map_or(Ok(()), |segment| segment.note(id, note))
    }

    /// Keeps a mark. Keys must be ascending.
    pub(super) fn mark(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.segment.as_mut().map_or(Ok(()), |segment| segment.mark(key, value))
    }

    /// Sorts, writes all files, and makes the store visible and durable.
    ///
    /// # Errors
    /// [`Error::Io`]. After an error there is no new store, and an old store is unchanged. There is one exception: if
    /// the very last sync fails, the new store is visible, but may not survive a power failure.
    pub fn finish(mut self) -> Result<Snapshot<F>> {
        let written = self.segment.take().map(SegmentBuilder::finish_chosen).transpose()?;
        self.publish(written)
    }

    /// Like [`Builder::finish`], with the fingerprints of a sorted source instead of inserted ones, and without ids.
    /// The first table needs no sorting, and no memory except for its block index.
    ///
    /// `source` is called once to count the fingerprints, and once for each table; before that, once to choose the
    /// codec if `codec_for` is set. It calls its argument with strictly ascending fingerprints, in batches, the same
    /// ones each time. It returns any error of its argument.
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
    /// Errors of [`Builder::finish`]; [`Error::OutOfOrder`]; [`Error::BadArgument`] if the options ask for ids, if
    /// fingerprints or names were inserted, or if the source does not give the same number each time.
    pub fn finish_sorted(
        mut self,
        source: impl Fn(&mut dyn FnMut(&[F]) -> Result<()>) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Snapshot<F>> {
        if self.options.ids || self.inserted {
            let message =
                "fingerprints of a source have no ids, and none are inserted beside them".to_string();
            return Err(Error::BadArgument(message));
        }
        let count = OnceLock::new();
        let same_each_time = move |write: &mut dyn FnMut(&[F]) -> Result<()>| {
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
        let source = Box::new(same_each_time);
        let written = self.segment.take().map(|segment| segment.finish_sorted(source)).transpose()?;
        self.publish(written)
    }

    /// Makes the files of a segment durable, and the store visible.
    fn publish(mut self, written: Option<(SegmentEntry, Codec)>) -> Result<Snapshot<F>> {
        self.made = written.iter().flat_map(|(entry, _)| entry.files()).collect();
        let fs: Arc<dyn Fs> = self.options.fs.clone();
        fs.sync_dir(&self.store).map_err(Error::io(&self.store, "sync"))?;
        if self.folder_is_new {
            sync_parent(&*fs, &self.store)?;
        }
        let options = &self.options;
        let settings = Settings {
            bits: F::BITS,
            distance: options.distance,
            codec: written.as_ref().map_or(options.codec, |(_, codec)| *codec),
            ids: options.ids,
            block_size: options.block_size,
            span: options.span,
            profile: options.profile.clone(),
            plan: options.plan.clone(),
        };
        let manifest = Manifest {
            settings,
            next_number: self.number + 1,
            first_log: 0,
            sequence: 0,
            highest_id: self.highest_id,
            segments: written.into_iter().map(|(entry, _)| entry).collect(),
        };
        let saved = match self.is_marked {
            true => manifest.save_as_first(&fs, &self.store),
            false => manifest.save(&fs, &self.store),
        };
        if let Err(error) = saved {
            let visible = match Manifest::load(&*fs, &self.store) {
                Ok(found) => found == manifest,
                Err(Error::NotAStore { .. }) => false,
                // It is unknown which of the two stores is on the disk, so the files of both stay.
                Err(_) => true,
            };
            if visible {
                self.made.clear();
                self.is_marked = false;
                self.folder_is_new = false;
            }
            return Err(error);
        }
        self.folder_is_new = false;
        self.is_marked = false;
        self.made.clear();
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
        // Unfinished files remove themselves.
        self.segment = None;
        if !self.process.is_here() {
            return;
        }
        let fs = &self.options.fs;
        // Only files of this build are removed. The marker is removed last, and stays if any other file could not be
        // removed.
        self.made.iter().for_each(|name| drop(fs.remove(&self.store.join(name))));
        let is_empty =
            || fs.list(&self.store).is_ok_and(|names| !names.iter().any(|name| is_store_file(name)));
        if self.is_marked && is_empty() {
            // If this fails, a power failure may leave files without the marker: later builds refuse them, and do not
            // remove them.
            let _ = fs.sync_dir(&self.store);
            let _ = fs.remove(&self.store.join(BUILDING));
        }
        let is_moved = self.locked.as_ref().is_some_and(|locked| locked.check().is_err());
        if !self.folder_is_new || is_moved {
            return;
        }
        if self.locked.is_some() {
            let _ = self.disk.remove(&self.store.join(LOCK));
        }
        // Fails, as it should, if another build has begun in the folder.
        let _ = self.disk.remove_dir(&self.store);
    }
}
