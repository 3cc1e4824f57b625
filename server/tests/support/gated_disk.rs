//! A disk that can be full, and that can hold back new files until it is told to go on.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use simstore::fs::{Disk, Fs, Lock, SyncFile, WriteFile};
use simstore::raw::Bytes;

/// Treatment of writes by the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DiskMode {
    #[default]
    Normal,
    /// Writes fail, because no space is left.
    Full,
    /// The creation of a file waits for another mode.
    Held,
}

/// The mode of a [`GatedDisk`], which a test can change.
#[derive(Debug, Default)]
pub(crate) struct DiskGate {
    mode: Mutex<DiskMode>,
    changed: Condvar,
}

impl DiskGate {
    pub(crate) fn set(&self, mode: DiskMode) {
        *self.mode.lock().unwrap() = mode;
        self.changed.notify_all();
    }

    fn check_space(&self) -> io::Result<()> {
        if *self.mode.lock().unwrap() == DiskMode::Full {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }
}

/// The real disk behind a gate.
#[derive(Debug, Default)]
pub(crate) struct GatedDisk {
    disk: Disk,
    pub(crate) gate: Arc<DiskGate>,
}

struct GatedFile {
    file: Box<dyn WriteFile>,
    gate: Arc<DiskGate>,
}

impl Write for GatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.gate.check_space()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl WriteFile for GatedFile {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn sync_handle(&self) -> io::Result<Box<dyn SyncFile>> {
        self.file.sync_handle()
    }
}

macro_rules! forward {
    ($($name:ident($($path:ident),+) -> $result:ty;)+) => {
        $(fn $name(&self, $($path: &Path),+) -> io::Result<$result> { self.disk.$name($($path),+) })+
    };
}

impl Fs for GatedDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let mut mode = self.gate.mode.lock().unwrap();
        while *mode == DiskMode::Held {
            mode = self.gate.changed.wait(mode).unwrap();
        }
        drop(mode);
        self.gate.check_space()?;
        Ok(Box::new(GatedFile { file: self.disk.create(path)?, gate: self.gate.clone() }))
    }

    forward! {
        open(path) -> Box<dyn Read + Send>;
        map(path) -> Bytes;
        rename(from, to) -> ();
        remove(path) -> ();
        create_dir(path) -> ();
        remove_dir(path) -> ();
        list(path) -> Vec<String>;
        sync_file(path) -> ();
        sync_dir(path) -> ();
        lock(path) -> Option<Lock>;
    }
}
