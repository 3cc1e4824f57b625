//! Building a store in one go.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Store, remove_litter};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::{Fs, Lock};
use crate::manifest::{MANIFEST, Manifest, is_store_file};
use crate::options::BuildOptions;
use crate::plan::Plan;
use crate::segment::SegmentBuilder;

/// The file whose lock a writer holds.
const LOCK: &str = "LOCK";

/// Builds a store from fingerprints in any order.
///
/// The store appears when [`Builder::finish`] has made everything durable. Dropped before, the builder
/// removes what it made; a build that was killed leaves files that the next build removes.
pub struct Builder<F: Fingerprint> {
    store: PathBuf,
    options: BuildOptions,
    segment: Option<SegmentBuilder<F>>,
    /// The files of the store that is replaced.
    replaced: Vec<String>,
    folder_is_new: bool,
    lock: Option<Lock>,
}

impl<F: Fingerprint> Builder<F> {
    /// Starts a store in a folder that does not exist, is empty, or holds what a killed build left.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if there is a store and `options.replace` is not set, or anything else;
    /// [`Error::Locked`] if another process is building it; [`Error::BadArgument`] or
    /// [`Error::IncompletePlan`] if the options ask for what cannot be; [`Error::Io`].
    pub fn create(path: &Path, options: BuildOptions) -> Result<Self> {
        // What cannot be is refused before anything is made.
        match &options.plan {
            crate::PlanChoice::Named(name) => Plan::<F>::named(name, options.distance).map(|_| ())?,
            crate::PlanChoice::Auto => Plan::<F>::named("scan", options.distance).map(|_| ())?,
        }
        crate::format::check_block_size(options.block_size)?;
        let fs = options.fs.clone();
        let folder_is_new = match fs.create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(Error::io(path, "create")(error)),
        };
        let mut builder = Builder {
            store: path.to_path_buf(),
            options: options.clone(),
            segment: None,
            replaced: Vec::new(),
            folder_is_new,
            lock: None,
        };
        let number = builder.take_folder(&*fs)?;
        builder.segment = Some(SegmentBuilder::new(path, number, options));
        Ok(builder)
    }

    /// Locks the folder, removes what a killed build left, and returns the number of the new segment.
    fn take_folder(&mut self, fs: &dyn Fs) -> Result<u64> {
        let path = &self.store;
        let taken = |reason| Err(Error::AlreadyExists { path: path.clone(), reason });
        let names = match fs.list(path) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return taken("a file is in the way; choose another path for the store");
            }
            Err(error) => return Err(Error::io(path, "list")(error)),
        };
        let has_store = names.iter().any(|name| name == MANIFEST);
        if has_store && !self.options.replace {
            return taken("there is a store already; use --force to replace it");
        }
        if !has_store && !names.iter().all(|name| is_store_file(name) || name == LOCK) {
            return taken("the folder is not empty and not a store; choose another path for the store");
        }
        let lock = path.join(LOCK);
        self.lock = fs.lock(&lock).map_err(Error::io(&lock, "lock"))?;
        if self.lock.is_none() {
            self.folder_is_new = false;
            return Err(Error::Locked { path: path.clone() });
        }
        let mut number = 1;
        // A store that cannot be read is replaced all the same; its files have to be out of the way.
        if has_store && let Ok(old) = Manifest::load(fs, path) {
            number = old.segments.iter().map(|segment| segment.number).max().unwrap_or(0) + 1;
            self.replaced = old.segments.iter().flat_map(|segment| segment.files()).collect();
        } else if has_store {
            let numbers = names.iter().filter_map(|name| name.get(..6)?.parse::<u64>().ok());
            number = numbers.max().unwrap_or(0) + 1;
            self.replaced = names;
        }
        remove_litter(fs, path, &self.replaced)?;
        Ok(number)
    }

    /// Adds a fingerprint with an id. The same pair again changes nothing; a fingerprint may have any number
    /// of ids.
    ///
    /// # Errors
    /// [`Error::Io`] if a sorted run cannot be written.
    pub fn insert(&mut self, fingerprint: F, id: u64) -> Result<()> {
        match &mut self.segment {
            Some(segment) => segment.insert(fingerprint, id),
            None => Ok(()),
        }
    }

    /// [`Builder::insert`] for a document that has a name, up to 64 KiB of it. Ids come in ascending order.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] if the id is not larger than that of the named document before,
    /// [`Error::BadArgument`] if the name is too long, [`Error::Io`].
    pub fn insert_named(&mut self, fingerprint: F, id: u64, name: &str) -> Result<()> {
        if let Some(segment) = &mut self.segment {
            segment.name(id, name)?;
        }
        self.insert(fingerprint, id)
    }

    /// Sorts, writes all files, and makes the store visible and durable.
    ///
    /// # Errors
    /// [`Error::Io`]; then there is no new store, and one that was to be replaced is as it was.
    pub fn finish(mut self) -> Result<Store<F>> {
        let fs: Arc<dyn Fs> = self.options.fs.clone();
        let mut segments = Vec::new();
        if let Some(segment) = self.segment.take() {
            segments.push(segment.finish()?);
        }
        fs.sync_dir(&self.store).map_err(Error::io(&self.store, "sync"))?;
        let manifest = Manifest {
            bits: F::BITS,
            distance: self.options.distance,
            codec: self.options.codec,
            profile: self.options.profile.clone(),
            segments,
        };
        let files: Vec<String> = manifest.segments.iter().flat_map(|segment| segment.files()).collect();
        manifest.save(&fs, &self.store)?;
        // From here on the store is complete: nothing may be removed but what it replaces.
        self.folder_is_new = false;
        self.replaced = files;
        remove_litter(&*fs, &self.store, &self.replaced)?;
        Store::open_on(&fs, &self.store)
    }
}

impl<F: Fingerprint> Drop for Builder<F> {
    fn drop(&mut self) {
        // Files being written remove themselves.
        self.segment = None;
        if self.lock.is_none() {
            return;
        }
        let fs = &self.options.fs;
        let _ = remove_litter(&**fs, &self.store, &self.replaced);
        if self.folder_is_new {
            let _ = fs.remove(&self.store.join(LOCK));
            let _ = fs.remove_dir(&self.store);
        }
    }
}
