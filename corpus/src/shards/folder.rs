//! Manages the folder of a set of shards: writes the list of shards, removes leftovers of failed runs, and checks shards
//! against the list.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use simstore::error::Damage;
use simstore::fs::open_regular;
use simstore::{Error, Result};

use super::list::{LIST_FILE, ShardList, StoreShard, is_hexadecimal, parse_shard_folder};
use simstore_io::output::{Output, UnfinishedOutputs};

const MANIFEST: &str = "MANIFEST";

/// Prepares a folder for the shards of a run: creates the folder if necessary, and removes leftovers of failed runs.
///
/// # Errors
/// [`Error::AlreadyExists`] if the folder has a list of shards and `replace` is false, or if it has other files than shards.
/// [`Error::Io`] if the folder cannot be created or read. Errors of [`ShardList::read`] for an existing list.
pub fn prepare_folder(folder: &Path, replace: bool) -> Result<()> {
    fs::create_dir_all(folder).map_err(Error::io(folder, "create"))?;
    let names = names_in(folder)?;
    let has_list = names.iter().any(|name| name == LIST_FILE);
    let exists_error = |reason| Err(Error::AlreadyExists { path: folder.to_path_buf(), reason });
    if has_list && !replace {
        return exists_error("shards already exist; option `replace` replaces them");
    }
    if names.iter().any(|name| name != LIST_FILE && !is_shard_entry(name)) {
        return exists_error("the directory has other files than shards; choose another");
    }
    let listed = if has_list { ShardList::read(&folder.join(LIST_FILE))?.shards } else { Vec::new() };
    remove_all_except(folder, &listed)
}

impl ShardList {
    /// Writes the list to the folder atomically: from then on, readers of the folder see exactly the shards in this list. Then
    /// removes shards and temporary files of earlier runs and failed attempts.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the list would not be valid when read. [`Error::Refused`] if another process is writing the
    /// list. [`Error::Io`] if the list cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let bytes = self.to_bytes()?;
        let mut output = Output::replace(&folder.join(LIST_FILE), &UnfinishedOutputs::default())?;
        output.write_bytes(&bytes)?;
        output.finish()?;
        remove_all_except(folder, &self.shards)
    }

    /// Checks that the store at the path `store` is the shard that `shard` describes, by the checksum in the store's
    /// manifest. If the store is open, `opened` has its width in bits, distance, number of fingerprints and number of
    /// pairs, which must equal the values in the list.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the checksum or a value differs. Errors of [`manifest_checksum`].
    pub fn check_shard(
        &self,
        shard: &StoreShard,
        store: &Path,
        opened: Option<(u32, u32, u64, u64)>,
    ) -> Result<()> {
        let expected = (self.bits, self.distance, shard.fingerprints, shard.pairs);
        let what = if manifest_checksum(store)? != shard.checksum {
            "the checksums in the manifest of the shard and in shards.json"
        } else if opened.is_some_and(|opened| opened != expected) {
            "bits, distance, fingerprints or pairs of the shard and in shards.json"
        } else {
            return Ok(());
        };
        Err(Error::Corrupt { path: store.join(MANIFEST), offset: 0, damage: Damage::Mismatch { what } })
    }
}

/// Returns the checksum in the manifest of a store, in eight hexadecimal digits. The checksum covers all files of the store.
///
/// # Errors
/// [`Error::Io`] if the manifest does not exist or cannot be read. [`Error::Corrupt`] if the manifest is cut short.
pub fn manifest_checksum(store: &Path) -> Result<String> {
    let path = store.join(MANIFEST);
    let mut data = Vec::new();
    let read = open_regular(&path).and_then(|mut file| file.read_to_end(&mut data));
    read.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let action = "open a missing shard; restore it from a copy, or build the shards again";
            Error::io(store, action)(error)
        }
        _ => Error::io(&path, "read")(error),
    })?;
    // The checksum has four bytes, and eight more follow it.
    let checksum = data.split_last_chunk::<8>().and_then(|(before, _)| before.last_chunk());
    let Some(&checksum) = checksum else {
        let found = data.len() as u64;
        return Err(Error::Corrupt {
            path,
            offset: found,
            damage: Damage::Truncated { expected: 12, found },
        });
    };
    Ok(format!("{:08x}", u32::from_le_bytes(checksum)))
}

/// Lists the names of all files and folders in a folder. Invalid Unicode in names is replaced by U+FFFD.
fn names_in(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).map_err(Error::io(folder, "list"))?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| entry.map(name).map_err(Error::io(folder, "list"))).collect()
}

/// Removes from the folder the shards that are not in `listed`, and the temporary files of failed attempts. An entry that
/// cannot be removed remains without an error, because another attempt may still be writing it. Readers ignore such
/// entries, and the next run tries to remove them again.
fn remove_all_except(folder: &Path, listed: &[StoreShard]) -> Result<()> {
    for name in names_in(folder)? {
        if is_shard_entry(&name) && !listed.iter().any(|shard| shard.folder == name) {
            let path = folder.join(name);
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
    }
    Ok(())
}

/// Whether an entry of the folder is a shard, or a temporary file or folder of a writer of shards. The list of shards is
/// neither.
fn is_shard_entry(name: &str) -> bool {
    match name.strip_prefix('.').and_then(|hidden| hidden.rsplit_once('.')) {
        None => parse_shard_folder(name).is_some(),
        Some((LIST_FILE, end)) => end == "tmp",
        Some((folder, attempt)) => parse_shard_folder(folder).is_some() && is_hexadecimal(attempt, 16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shards::shard_folder;

    const RUN: &str = "0123456789abcdef";

    #[test]
    fn only_what_a_writer_of_shards_has_made_is_its_own() {
        for name in ["shard-00000-R", "shard-123456-R", ".shard-00000-R.R", ".shards.json.tmp"] {
            assert!(is_shard_entry(&name.replace('R', RUN)), "{name}");
        }
        for name in [
            "shards.json",
            ".shards.json.R",
            "shard-0000-R",
            "shard-000000-R",
            "shard-0000a-R",
            "shard-00000-R.R",
            ".shard-00000-R",
            ".shard-00000-R.tmp",
            "shard-00000-0123456789ABCDEF",
            ".R",
            "shard-00000-",
            "notes.txt",
            ".notes.R",
            "",
        ] {
            assert!(!is_shard_entry(&name.replace('R', RUN)), "{name}");
        }
    }

    #[test]
    fn preparing_a_folder_keeps_its_list_and_unknown_files() {
        let folder = tempfile::tempdir().unwrap();
        let set = folder.path().join("set");
        prepare_folder(&set, false).unwrap();
        let shard = shard_folder(1, RUN);
        fs::create_dir(set.join(&shard)).unwrap();
        fs::create_dir(set.join(format!(".{shard}.{RUN}"))).unwrap();
        fs::write(set.join(".shards.json.tmp"), "half").unwrap();
        prepare_folder(&set, false).unwrap();
        assert_eq!(fs::read_dir(&set).unwrap().count(), 0);
        let (run, shards) = (RUN.to_owned(), Vec::new());
        let empty = ShardList { run, bits: 64, distance: 3, profile: None, missing: 0, shards };
        empty.write(&set).unwrap();
        assert_eq!(ShardList::read(&set.join(LIST_FILE)).unwrap(), empty);
        let refused = prepare_folder(&set, false).unwrap_err();
        assert!(refused.to_string().contains("`replace`"), "{refused}");
        prepare_folder(&set, true).unwrap();
        fs::write(set.join("notes.txt"), "mine").unwrap();
        let refused = prepare_folder(&set, true).unwrap_err();
        assert!(refused.to_string().contains("other files than shards"), "{refused}");
        assert!(set.join("notes.txt").exists() && set.join(LIST_FILE).exists());
    }

    #[test]
    fn a_shard_that_is_another_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MANIFEST);
        assert!(matches!(manifest_checksum(folder.path()), Err(Error::Io { .. })));
        for bytes in 0..12 {
            fs::write(&path, vec![1; bytes]).unwrap();
            assert!(matches!(manifest_checksum(folder.path()), Err(Error::Corrupt { .. })));
        }
        fs::write(&path, [7, 1, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9]).unwrap();
        let checksum = manifest_checksum(folder.path()).unwrap();
        assert_eq!(checksum, "00000001");
        let shard = StoreShard { folder: shard_folder(0, RUN), fingerprints: 1, pairs: 2, checksum };
        let (run, shards) = (RUN.to_owned(), vec![shard.clone()]);
        let list = ShardList { run, bits: 64, distance: 3, profile: None, missing: 0, shards };
        let check = |shard, opened| list.check_shard(shard, folder.path(), opened);
        check(&shard, None).unwrap();
        check(&shard, Some((64, 3, 1, 2))).unwrap();
        let other = StoreShard { checksum: "00000002".to_owned(), ..shard.clone() };
        assert!(matches!(check(&other, None), Err(Error::Corrupt { .. })));
        assert!(matches!(check(&shard, Some((64, 3, 1, 3))), Err(Error::Corrupt { .. })));
    }

    /// A pipe in place of a list or manifest does not block: reading the pipe is refused, and writing the list replaces it.
    #[cfg(unix)]
    #[test]
    fn pipes_are_no_lists_and_no_manifests() {
        let folder = tempfile::tempdir().unwrap();
        for name in [LIST_FILE, MANIFEST] {
            let pipe = folder.path().join(name);
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        }
        let said = [
            ShardList::read(&folder.path().join(LIST_FILE)).unwrap_err().to_string(),
            manifest_checksum(folder.path()).unwrap_err().to_string(),
        ];
        assert!(said.iter().all(|said| said.contains("a pipe")), "{said:?}");
        let (run, shards) = (RUN.to_owned(), Vec::new());
        let list = ShardList { run, bits: 64, distance: 3, profile: None, missing: 0, shards };
        list.write(folder.path()).unwrap();
        assert!(fs::symlink_metadata(folder.path().join(LIST_FILE)).unwrap().is_file());
    }
}
